// Definitions for lines.hpp.
#pragma once

#include <millrace/sources/lines.hpp>

#include <millrace/base/text.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/file/foreign_file.hpp>
#include <millrace/item/owner.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE line_reader::line_reader(std::unique_ptr<byte_source> source, block_pool& pool,
                                         line_reader_options options)
    : options_(options),
      source_(std::move(source)),
      pool_(&pool),
      stream_(std::make_unique<detail::shard_stream>(
          *source_, pool,
          detail::shard_stream::content{
              .stage = stage, .may_be_empty = true, .max_expansion = options.limits.max_expansion})) {}

MILLRACE_INLINE std::optional<line> line_reader::next() {
  line_failed_ = false;
  while (at_ == heads_.size()) {
    if (failure_) std::rethrow_exception(failure_);
    if (ended_) return std::nullopt;
    read_block();
  }
  const std::size_t head_at = heads_[at_++];
  if (head_at == no_head) [[unlikely]] {
    line_failed_ = true;
    std::rethrow_exception(std::exchange(bad_[bad_at_++].why, nullptr));
  }
  const auto* const head = reinterpret_cast<const detail::record_head*>(block_.get()->data() + head_at);
  line read{record(head)};
  if (at_ == heads_.size()) block_ = {};
  return read;
}

MILLRACE_INLINE void line_reader::check_rest() {
  heads_.clear();
  at_ = 0;
  ended_ = true;
  try {
    static_cast<void>(stream_->is_sound_to_its_end());
  } catch (error& e) {
    e.add(last_line());
    failure_ = std::current_exception();
    throw;
  }
}

MILLRACE_INLINE void line_reader::report(event_counts& counts) const noexcept {
  if (empty_lines_ > 0) counts.count("empty lines passed over", empty_lines_);
}

MILLRACE_INLINE void line_reader::read_block() {
  heads_.clear();
  lines_.clear();
  bad_.clear();
  at_ = bad_at_ = consumed_bytes_ = 0;
  block_ = {};   // all remaining lines of the block may have been bad
  try {
    if (find_line_end()) find_lines();
    if (bad_.size() == lines_.size()) heads_.assign(lines_.size(), no_head);
    else build_block();
    offset_bytes_ += pending_.size() + consumed_bytes_;
    rest_.remove_prefix(consumed_bytes_);
    pending_.clear();
  } catch (error& e) {
    e.add(last_line());
    failure_ = std::current_exception();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

MILLRACE_INLINE bool line_reader::find_line_end() {
  while (rest_.find('\n') == std::string_view::npos) {
    // The 8 additional bytes are for a byte order mark and a line end, which do not count as text.
    if (pending_.size() + rest_.size() > options_.limits.max_line_bytes + 8) {
      skip_line();
      return false;
    }
    pending_ += rest_;
    const bool first = stream_->end_bytes() == 0;
    const auto chunk = stream_->next_chunk();
    rest_ = {reinterpret_cast<const char*>(chunk.data()), chunk.size()};
    if (first) check_kind(rest_);
    if (chunk.empty()) {
      ended_ = true;
      break;
    }
  }
  return true;
}

MILLRACE_INLINE void line_reader::check_kind(std::string_view front) const {
  if (const auto other = detail::foreign_to_lines(front))
    throw data_error("the file " + printable(source_->name()) + " has no lines of text: it looks like " + other->name,
                     other->advice,
                     {.stage = stage, .shard = std::string(source_->name()), .key = {}, .offset_bytes = 0});
}

MILLRACE_INLINE void line_reader::skip_line() {
  std::uint64_t size = pending_.size() + rest_.size();
  char last = rest_.empty() ? pending_.back() : rest_.back();
  pending_.clear();
  pending_.shrink_to_fit();
  std::size_t end = std::string_view::npos;
  do {
    const auto chunk = stream_->next_chunk();
    rest_ = {reinterpret_cast<const char*>(chunk.data()), chunk.size()};
    ended_ = chunk.empty();
    end = rest_.find('\n');
    const std::string_view text = rest_.substr(0, end);
    size += text.size();
    if (!text.empty()) last = text.back();
  } while (!ended_ && end == std::string_view::npos);
  lines_.push_back({0, 0, ++number_});
  fail_last(too_long(number_, size - (!ended_ && last == '\r' ? 1 : 0), offset_bytes_));
  consumed_bytes_ = ended_ ? 0 : end + 1;
  offset_bytes_ += size - (ended_ ? 0 : end);   // read_block() adds consumed_bytes_
}

MILLRACE_INLINE void line_reader::find_lines() {
  if (ended_) {
    const bool only_a_mark = number_ == 0 && pending_ == byte_order_mark;
    if (!pending_.empty() && !only_a_mark) add_line(0, pending_.size());
    return;
  }
  for (std::size_t begin = 0; lines_.size() < block_lines && consumed_bytes_ < block_bytes;) {
    const std::size_t end = rest_.find('\n', consumed_bytes_);
    if (end == std::string_view::npos) break;
    const char before = end > 0 ? rest_[end - 1] : pending_.empty() ? '\0' : pending_.back();
    const std::size_t at_end = pending_.size() + end;
    add_line(begin, at_end - (before == '\r' && at_end > begin ? 1 : 0));
    consumed_bytes_ = end + 1;
    begin = at_end + 1;
  }
}

MILLRACE_INLINE void line_reader::add_line(std::size_t begin, std::size_t end) {
  if (++number_ == 1 && end >= 3 && (pending_ + std::string(rest_.substr(0, 3))).starts_with(byte_order_mark))
    begin += byte_order_mark.size();
  if (end == begin && options_.skip_empty) {
    ++empty_lines_;
    return;
  }
  lines_.push_back({begin, end - begin, number_});
  if (end - begin > options_.limits.max_line_bytes) fail_last(too_long(number_, end - begin, offset_bytes_ + begin));
}

MILLRACE_INLINE void line_reader::build_block() {
  constexpr std::size_t bytes_of_line = line::key_before.size() + 20 + sizeof(detail::field_entry) +
                                        sizeof(detail::record_head) + alignof(detail::record_head);
  const std::string_view file = source_->name();
  const std::size_t text_bytes = pending_.size() + consumed_bytes_;
  block_ = pool_->take(text_bytes + field_name.size() + file.size() + lines_.size() * bytes_of_line);
  std::byte* const base = block_.get()->data();
  std::size_t at = 0;
  static_cast<void>(put(base, at, pending_));
  static_cast<void>(put(base, at, rest_.substr(0, consumed_bytes_)));
  if (options_.check_utf8) check_text({reinterpret_cast<const char*>(base), lines_.back().at + lines_.back().size});
  if (bad_.size() == lines_.size()) {
    heads_.assign(lines_.size(), no_head);
    block_ = {};
    return;
  }
  const std::size_t name_at = put(base, at, field_name), file_at = put(base, at, file);
  std::size_t bad = 0, last_head_at = no_head;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (bad < bad_.size() && bad_[bad].index == i) [[unlikely]] {
      ++bad;
      heads_.push_back(no_head);
      continue;
    }
    const span_of_line& one = lines_[i];
    const std::size_t key_at = put(base, at, line::key_before);
    auto* const digits = reinterpret_cast<char*>(base + at);
    at += static_cast<std::size_t>(std::to_chars(digits, digits + 20, one.number).ptr - digits);
    const std::size_t key_size = at - key_at;
    at = (at + alignof(detail::record_head) - 1) & ~(alignof(detail::record_head) - 1);
    const detail::field_entry field{name_at, field_name.size(), one.at, one.size};
    const std::size_t head_at = at + sizeof field;
    const detail::record_head head{.key_at = key_at,
                                   .key_size = key_size,
                                   .shard_at = file_at,
                                   .shard_size = file.size(),
                                   .fields_at = at,
                                   .field_count = 1,
                                   .offset_bytes = offset_bytes_ + one.at,
                                   .head_at = head_at,
                                   .held_bytes = block_.get()->capacity_bytes / lines_.size()};
    std::memcpy(base + at, &field, sizeof field);
    at = head_at;
    if (last_head_at == no_head) block_.get()->head = base + at;
    else reinterpret_cast<detail::record_head*>(base + last_head_at)->next_at = at;
    heads_.push_back(last_head_at = at);
    std::memcpy(base + at, &head, sizeof head);
    at += sizeof head;
  }
}

MILLRACE_INLINE std::size_t line_reader::put(std::byte* base, std::size_t& at, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(base + at, text.data(), text.size());
  return std::exchange(at, at + text.size());
}

MILLRACE_INLINE void line_reader::check_text(std::string_view text) {
  const std::size_t too_long_lines = bad_.size();
  for (std::size_t begin = 0, i = 0; i < lines_.size();) {
    const std::size_t good = begin + detail::utf8_prefix_bytes(text.substr(begin));
    if (good == text.size()) break;
    while (i + 1 < lines_.size() && lines_[i + 1].at <= good) ++i;
    const auto same = [i](const bad_line& bad) { return bad.index == i; };
    if (std::none_of(bad_.begin(), bad_.end(), same))
      bad_.push_back({i, detail::exception_of(not_utf8(lines_[i], text, good))});
    if (++i < lines_.size()) begin = lines_[i].at;
  }
  if (too_long_lines > 0 && bad_.size() > too_long_lines)
    std::sort(bad_.begin(), bad_.end(), [](const bad_line& a, const bad_line& b) { return a.index < b.index; });
}

MILLRACE_INLINE data_error line_reader::not_utf8(const span_of_line& bad, std::string_view text,
                                                 std::size_t good) const {
  const std::string_view before = text.substr(bad.at, good - bad.at), begin = text.substr(bad.at, 2);
  const auto column = 1 + std::count_if(before.begin(), before.end(), [](char c) { return (c & 0xC0) != 0x80; });
  const bool utf16 = bad.number == 1 && (begin == "\xff\xfe" || begin == "\xfe\xff");
  const auto wrong = static_cast<unsigned char>(text[good]);
  return {subject(bad.number) + " is not valid UTF-8: got byte 0x" + detail::hex(wrong, 2) + " at column " +
              std::to_string(column) + (utf16 ? ", the mark of UTF-16" : ""),
          "Convert the file to UTF-8 (iconv -f " + std::string(utf16 ? "UTF-16" : "ENCODING") +
              " -t UTF-8), or set lines_options::check_utf8 to false",
          where(bad.number, offset_bytes_ + good)};
}

MILLRACE_INLINE data_error line_reader::too_long(std::uint64_t number, std::uint64_t size,
                                                 std::uint64_t offset_bytes) const {
  return {subject(number) + " is too long: got " + std::to_string(size) + " bytes, expected at most " +
              std::to_string(options_.limits.max_line_bytes),
          "Raise max_line_bytes if the line is valid; otherwise the file does not consist of lines",
          where(number, offset_bytes)};
}

MILLRACE_INLINE std::string line_reader::subject(std::uint64_t number) const {
  return printable(source_->name()) + ":" + std::to_string(number);
}

MILLRACE_INLINE error_location line_reader::where(std::uint64_t number, std::uint64_t offset_bytes) const {
  return {.stage = stage,
          .shard = std::string(source_->name()),
          .key = std::string(line::key_before) + std::to_string(number),
          .offset_bytes = offset_bytes};
}

MILLRACE_INLINE std::string line_reader::last_line() const {
  return number_ == 0 ? ", before the first line was complete" : ", after line " + std::to_string(number_);
}

MILLRACE_INLINE void line_reader::fail_last(data_error why) {
  bad_.push_back({lines_.size() - 1, detail::exception_of(std::move(why))});
}

}}   // namespace millrace

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool is_text_name(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 5> compressions{".gz", ".zst", ".bz2", ".xz", ".lz4"};
  constexpr std::array<std::string_view, 6> endings{".txt", ".jsonl", ".ndjson", ".json", ".csv", ".tsv"};
  if (name.empty() || name.front() == '.') return false;
  for (const std::string_view end : compressions)
    if (name.ends_with(end)) {
      name.remove_suffix(end.size());
      break;
    }
  return std::any_of(endings.begin(), endings.end(), [name](std::string_view end) { return name.ends_with(end); });
}

MILLRACE_INLINE lines_source::lines_source(std::vector<std::string> names, const lines_options& o)
    : files_(std::move(names), o.storage),
      options_{.limits = o.limits, .skip_empty = o.skip_empty, .check_utf8 = o.check_utf8},
      pool_(make_shared_object<block_pool>()),
      reads_(make_shared_object<read_meter>()) {}

MILLRACE_INLINE line_reader lines_source::open(std::size_t shard, std::uint64_t) const {
  return {files_.open(shard, *reads_), *pool_, options_};
}

MILLRACE_INLINE lines_source lines_source::watched_in(std::shared_ptr<read_meter> meter) const {
  lines_source same = *this;
  same.reads_ = std::move(meter);
  return same;
}

}   // namespace detail

}}   // namespace millrace
