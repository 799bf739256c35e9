// Definitions for shard_writer.hpp.
#pragma once

#include <millrace/io/tar/write/shard_writer.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/tar/format/member_name.hpp>
#include <millrace/io/tar/format/tar_header.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Files>
MILLRACE_INLINE basic_shard_writer<Files>::basic_shard_writer(shard_writer_options options, Files files)
    : options_(std::move(options)), files_(std::move(files)) {
  if (options_.max_samples == 0 || options_.max_bytes == 0)
    throw setup_error("max_samples or max_bytes is wrong: got 0, expected at least 1", "Omit them for the defaults");
  parse_pattern();
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::write(std::string_view key, std::span<const named_bytes> fields) {
  if (broken_) throw setup_error("the shard writer is closed, or an earlier write failed", "Create a new writer");
  check_key(key);
  sort_fields(key, fields);
  headers_.clear();
  header_ends_.clear();
  std::uint64_t sample_bytes = 0;
  for (const auto& field : sorted_) {
    name_.assign(key).append(".").append(field.name);
    append_tar_header(headers_, name_, field.data.size());
    header_ends_.push_back(headers_.size());
    sample_bytes += field.data.size() + tar_padding(field.data.size());
  }
  sample_bytes += headers_.size();
  try {
    if (file_ && (samples_in_shard_ == options_.max_samples ||
                  file_->size_bytes() + sample_bytes + tar_end_marker_bytes > options_.max_bytes))
      finish_shard();
    if (!file_) begin_shard(path_of(options_.first_number + written_.shards));
    append_sample();
  } catch (...) {
    broken_ = true;
    file_.reset();
    throw;
  }
  ++samples_in_shard_;
  last_key_ = key;
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::write(std::string_view key, std::initializer_list<named_bytes> fields) {
  write(key, std::span<const named_bytes>(fields.begin(), fields.size()));
}

template <class Files>
MILLRACE_INLINE written_shards basic_shard_writer<Files>::close() {
  if (std::exchange(broken_, true) && !closed_)
    throw setup_error("an earlier write of this shard writer failed", "Create a new writer");
  if (file_) finish_shard();
  closed_ = true;
  return written_;
}

template <class Files>
MILLRACE_INLINE std::string basic_shard_writer<Files>::path_of(std::uint64_t number) const {
  const std::string digits = std::to_string(number);
  const std::size_t zeros = number_digits_ > digits.size() ? number_digits_ - digits.size() : 0;
  return before_number_ + std::string(zeros, '0') + digits + after_number_;
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::begin_shard(const std::string& path) {
  std::string folder = path.substr(0, path.rfind('/') + 1);   // without a slash, npos + 1 is 0
  if (std::exchange(cleaned_, folder) != folder)
    remove_abandoned_files(folder, files_,
                           [&](std::string_view name) { return of_pattern(folder + std::string(name)); });
  file_ = make_owner<atomic_file<Files>>(path, files_);
}

template <class Files>
MILLRACE_INLINE bool basic_shard_writer<Files>::of_pattern(std::string_view path) const {
  if (path.size() <= before_number_.size() + after_number_.size() || !path.starts_with(before_number_) ||
      !path.ends_with(after_number_))
    return false;
  const std::string_view digits = path.substr(before_number_.size(),
                                              path.size() - before_number_.size() - after_number_.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos && digits.size() >= number_digits_;
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::append_sample() {
  static constexpr std::array<std::byte, tar_block_bytes> zeros{};
  std::size_t header_at = 0;
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    file_->append(std::string_view(headers_).substr(header_at, header_ends_[i] - header_at));
    header_at = header_ends_[i];
    file_->append(sorted_[i].data);
    file_->append(std::span(zeros).first(tar_padding(sorted_[i].data.size())));
  }
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::finish_shard() {
  const auto file = std::move(file_);   // the shard ends here, even if an error follows
  file->append(std::string(tar_end_marker_bytes, '\0'));
  file->commit();
  ++written_.shards;
  written_.samples += std::exchange(samples_in_shard_, 0);
  written_.bytes += file->size_bytes();
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::check_key(std::string_view key) const {
  const auto refuse = [key](const char* problem) {
    throw setup_error("the key '" + printable(key) + "' " + problem,
                      "Use another key: a program that reads the shard would not find this key");
  };
  if (key.empty() || key.ends_with('/')) refuse("has no basename");
  if (has_control_character(key)) refuse("has a control character");
  if (key.find('.', key.rfind('/') + 1) != std::string_view::npos) refuse("has a dot in its basename");
  if (split_member_name(key).kind == member_name::kind_of_name::metadata)
    refuse("is in a __folder__, which is for metadata");
  if (key == last_key_) refuse("is also the key of the previous sample");
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::sort_fields(std::string_view key, std::span<const named_bytes> fields) {
  const auto refuse = [key](std::string_view field, const char* problem) {
    throw setup_error("the field '" + printable(field) + "' of the key '" + printable(key) + "' " + problem,
                      "Rename the field: a program that reads the shard would not find a field of this name");
  };
  if (fields.empty()) throw setup_error("the key '" + printable(key) + "' has no fields", "Write at least one field");
  sorted_.assign(fields.begin(), fields.end());
  std::sort(sorted_.begin(), sorted_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    const std::string_view name = sorted_[i].name;
    if (name.empty()) refuse(name, "has no name");
    if (has_control_character(name) || name.find('/') != std::string_view::npos)
      refuse(name, "has a slash or a control character");
    if (std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      refuse(name, "is not in lower case");
    if (i > 0 && name == sorted_[i - 1].name) refuse(name, "occurs twice");
  }
}

template <class Files>
MILLRACE_INLINE bool basic_shard_writer<Files>::has_control_character(std::string_view name) noexcept {
  return std::any_of(name.begin(), name.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::parse_pattern() {
  const std::string_view pattern = options_.pattern;
  std::string* part = &before_number_;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      *part += pattern[at];
    } else if (pattern.substr(at + 1).starts_with('%')) {
      *part += pattern[at++];
    } else {
      const std::size_t end = std::min(pattern.find_first_not_of("0123456789", at + 1), pattern.size());
      const std::string_view width = pattern.substr(at + 1, end - at - 1);
      if (!pattern.substr(end).starts_with('d') || part == &after_number_ || width.size() > 3 ||
          (!width.empty() && width.front() != '0'))
        refuse_pattern();
      for (const char c : width) number_digits_ = number_digits_ * 10 + static_cast<std::size_t>(c - '0');
      part = &after_number_;
      at = end;
    }
  }
  if (part == &before_number_) refuse_pattern();
}

template <class Files>
MILLRACE_INLINE void basic_shard_writer<Files>::refuse_pattern() const {
  throw setup_error("the pattern '" + printable(options_.pattern) + "' does not contain exactly one number placeholder",
                    "Write the placeholder as %d or %06d, and a percent sign as %%");
}

#ifdef MILLRACE_COMPILED
template class basic_shard_writer<posix_files>;
#endif

}}}   // namespace millrace::detail
