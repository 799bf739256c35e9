// Writes samples into tar shards that WebDataset and every tar program can read.
//
//   mr::shard_writer shards({.pattern = "out/train-%06d.tar", .max_samples = 10'000});
//   shards.write("n01/0001", {{"jpg", image}, {"cls", "7"}});
//   auto totals = shards.close();        // shards, samples, bytes
//
// The same samples produce the same bytes on every machine and at any time. Fields are sorted by name; no time, owner
// or locale is written. A sample that would exceed a limit begins a new shard. A sample larger than max_bytes gets its
// own shard. A shard appears under its name when it is complete and on the disk. It then replaces any file of that
// name. Without close() the last, unfinished shard is discarded. The first call of write() removes temporary files that
// a killed writer of the same pattern left. abandoned_files.hpp describes when a writer counts as killed.
// Errors: setup_error for a pattern without one %d; setup_error for keys and fields that a reader would not return
// unchanged; the writer stays usable. io_error for a full disk and similar failures; the writer is then unusable.
// Threads: one thread at a time.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/tar/format/member_name.hpp>
#include <millrace/io/tar/format/tar_header.hpp>
#include <millrace/item/bytes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// A field to be written: its name and its data, as bytes or text. Both views are used only during the call.
struct named_bytes {
  named_bytes(std::string_view name_, std::span<const std::byte> data_) noexcept : name(name_), data(data_) {}
  named_bytes(std::string_view name_, std::string_view text) noexcept
      : name(name_), data(detail::bytes_of(text)) {}

  std::string_view name;
  std::span<const std::byte> data;
};

/// Options of shard_writer.
struct shard_writer_options {
  std::string pattern{};                               ///< path with one %d or %06d for the number; %% means %
  std::uint64_t max_samples = 10'000;                  ///< largest number of samples in a shard
  std::uint64_t max_bytes = std::uint64_t{1} << 30;    ///< largest size of a shard's file
  std::uint64_t first_number = 0;                      ///< number of the first shard
};

namespace detail {

/// The totals that close() returns.
struct written_shards {
  std::uint64_t shards = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;   ///< total size of the files
};

/// Writes samples into numbered shards. Only tests replace `Files`.
template <class Files = posix_files>
class basic_shard_writer {
 public:
  /// Checks the options. Throws setup_error if a limit is 0 or the pattern does not contain exactly one number.
  explicit basic_shard_writer(shard_writer_options options, Files files = {})
      : options_(std::move(options)), files_(std::move(files)) {
    if (options_.max_samples == 0 || options_.max_bytes == 0)
      throw setup_error("max_samples or max_bytes is 0: expected at least 1", "Omit them for the defaults");
    parse_pattern();
  }

  /// Writes one sample. Throws setup_error for a refused key or field and for a closed or failed writer. Throws
  /// io_error if the file fails.
  void write(std::string_view key, std::span<const named_bytes> fields) {
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
  /// Writes one sample, with the same errors.
  void write(std::string_view key, std::initializer_list<named_bytes> fields) {
    write(key, std::span<const named_bytes>(fields.begin(), fields.size()));
  }

  /// Completes the last shard. Returns the totals over all shards; a second call returns the same totals. Throws
  /// setup_error if the writer has failed before.
  written_shards close() {
    if (std::exchange(broken_, true) && !closed_)
      throw setup_error("an earlier write of this shard writer failed", "Create a new writer");
    if (file_) finish_shard();
    closed_ = true;
    return written_;
  }

  /// Returns the path of the shard with that number, whether it is written or not.
  std::string path_of(std::uint64_t number) const {
    const std::string digits = std::to_string(number);
    const std::size_t zeros = number_digits_ > digits.size() ? number_digits_ - digits.size() : 0;
    return before_number_ + std::string(zeros, '0') + digits + after_number_;
  }

 private:
  void begin_shard(const std::string& path) {
    std::string folder = path.substr(0, path.rfind('/') + 1);   // without a slash, npos + 1 is 0
    if (std::exchange(cleaned_, folder) != folder)
      remove_abandoned_files(folder, files_,
                             [&](std::string_view name) { return of_pattern(folder + std::string(name)); });
    file_ = std::make_unique<atomic_file<Files>>(path, files_);
  }
  bool of_pattern(std::string_view path) const {
    if (path.size() <= before_number_.size() + after_number_.size() || !path.starts_with(before_number_) ||
        !path.ends_with(after_number_))
      return false;
    const std::string_view digits =
        path.substr(before_number_.size(), path.size() - before_number_.size() - after_number_.size());
    return digits.find_first_not_of("0123456789") == std::string_view::npos && digits.size() >= number_digits_;
  }

  void append_sample() {
    static constexpr std::array<std::byte, tar_block_bytes> zeros{};
    std::size_t header_at = 0;
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      file_->append(std::string_view(headers_).substr(header_at, header_ends_[i] - header_at));
      header_at = header_ends_[i];
      file_->append(sorted_[i].data);
      file_->append(std::span(zeros).first(tar_padding(sorted_[i].data.size())));
    }
  }

  void finish_shard() {
    const auto file = std::move(file_);   // this shard ends here, even if an error follows
    file->append(std::string(tar_end_marker_bytes, '\0'));
    file->commit();
    ++written_.shards;
    written_.samples += std::exchange(samples_in_shard_, 0);
    written_.bytes += file->size_bytes();
  }

  void check_key(std::string_view key) const {
    const auto refuse = [key](const char* problem) {
      throw setup_error("the key '" + printable(key) + "' " + problem,
                        "Use another key: a reader would not return this one");
    };
    if (key.empty() || key.ends_with('/')) refuse("has no basename");
    if (has_control_character(key)) refuse("has a control character");
    if (key.find('.', key.rfind('/') + 1) != std::string_view::npos) refuse("has a dot in its basename");
    if (split_member_name(key).kind == member_name::kind_of_name::metadata)
      refuse("is in a __folder__, which is for metadata");
    if (key == last_key_) refuse("is also the key of the previous sample");
  }

  void sort_fields(std::string_view key, std::span<const named_bytes> fields) {
    const auto refuse = [key](std::string_view field, const char* problem) {
      throw setup_error("the field '" + printable(field) + "' of the key '" + printable(key) + "' " + problem,
                        "Use another name: a reader would not return this field");
    };
    if (fields.empty()) throw setup_error("the key '" + printable(key) + "' has no fields", "Write at least one");
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

  static bool has_control_character(std::string_view name) noexcept {
    return std::any_of(name.begin(), name.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
  }

  /// Parses %d itself, because a user's format string must never reach printf.
  void parse_pattern() {
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
  [[noreturn]] void refuse_pattern() const {
    throw setup_error("the pattern '" + printable(options_.pattern) + "' does not contain exactly one number",
                      "Write the number as %d or %06d, and a percent sign as %%");
  }

  shard_writer_options options_;
  Files files_;
  std::string before_number_, after_number_;
  std::size_t number_digits_ = 0;
  std::unique_ptr<atomic_file<Files>> file_;
  std::vector<named_bytes> sorted_;
  std::vector<std::size_t> header_ends_;
  std::string headers_, name_, last_key_;
  std::optional<std::string> cleaned_;   // the folder that was cleaned most recently
  std::uint64_t samples_in_shard_ = 0;
  written_shards written_;
  bool broken_ = false;
  bool closed_ = false;
};

}  // namespace detail

/// The writer for ordinary use.
using shard_writer = detail::basic_shard_writer<>;

}}  // namespace millrace
