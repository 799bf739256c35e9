// Defines what line_reader.hpp declares.
#pragma once

#include <millrace/sources/line_reader.hpp>

#include <millrace/base/text.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE line_reader::line_reader(std::unique_ptr<byte_source> source, block_pool& pool,
                                         line_reader_options options)
    : options_(options),
      source_(std::move(source)),
      pool_(&pool),
      stream_(std::make_unique<detail::shard_stream>(
          *source_, pool, detail::shard_stream::content{.stage = stage, .may_be_empty = true,
                                                     .max_expansion = options.max_expansion})) {}

MILLRACE_INLINE std::optional<line> line_reader::next() {
  while (at_ == heads_.size()) {
    if (failure_) std::rethrow_exception(failure_);
    if (ended_) return std::nullopt;
    read_block();
  }
  const auto* const head = reinterpret_cast<const detail::record_head*>(block_.get()->data() + heads_[at_++]);
  line read{record(head)};
  if (at_ == heads_.size()) block_ = {};
  return read;
}

MILLRACE_INLINE void line_reader::report(detail::event_counts& counts) const noexcept {
  if (empty_lines_ > 0) counts.count("empty lines passed over", empty_lines_);
}

MILLRACE_INLINE void line_reader::read_block() {
  heads_.clear();
  lines_.clear();
  at_ = 0;
  try {
    find_line_end();
    if (!failure_) find_lines();
    if (!lines_.empty()) make_block();
    offset_bytes_ += pending_.size() + taken_bytes_;
    rest_.remove_prefix(taken_bytes_);
    pending_.clear();
    // A damaged compressed stream makes lines look wrong, too. Then this call throws the real error, the damage.
    if (failure_) static_cast<void>(stream_->is_sound_to_its_end());
  } catch (error& known) {
    known.add(last_line());
    failure_ = std::current_exception();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

MILLRACE_INLINE void line_reader::find_line_end() {
  while (rest_.find('\n') == std::string_view::npos) {
    // The 8 spare bytes: a byte order mark and an end of line do not count as text.
    if (pending_.size() + rest_.size() > options_.max_line_bytes + 8)
      return fail(too_long(number_ + 1, pending_.size() + rest_.size(), offset_bytes_, "at least "));
    pending_ += rest_;
    const auto chunk = stream_->next_chunk();
    rest_ = {reinterpret_cast<const char*>(chunk.data()), chunk.size()};
    if (chunk.empty()) {
      ended_ = true;
      return;
    }
  }
}

MILLRACE_INLINE void line_reader::find_lines() {
  taken_bytes_ = 0;
  if (ended_) {
    const bool only_a_mark = number_ == 0 && pending_ == byte_order_mark;
    if (!pending_.empty() && !only_a_mark) add_line(0, pending_.size());
    return;
  }
  for (std::size_t begin = 0; lines_.size() < block_lines && taken_bytes_ < block_bytes && !failure_;) {
    const std::size_t end = rest_.find('\n', taken_bytes_);
    if (end == std::string_view::npos) break;
    const char before = end > 0 ? rest_[end - 1] : pending_.empty() ? '\0' : pending_.back();
    const std::size_t at_end = pending_.size() + end;
    add_line(begin, at_end - (before == '\r' && at_end > begin ? 1 : 0));
    taken_bytes_ = end + 1;
    begin = at_end + 1;
  }
}

MILLRACE_INLINE void line_reader::add_line(std::size_t begin, std::size_t end) {
  if (++number_ == 1 && end >= 3 &&
      (pending_ + std::string(rest_.substr(0, 3))).starts_with(byte_order_mark))
    begin += byte_order_mark.size();
  if (end - begin > options_.max_line_bytes)
    fail(too_long(number_, end - begin, offset_bytes_ + begin));
  else if (end == begin && options_.skip_empty)
    ++empty_lines_;
  else
    lines_.push_back({begin, end - begin, number_});
}

MILLRACE_INLINE void line_reader::make_block() {
  constexpr std::size_t bytes_of_line = line::key_before.size() + 20 + sizeof(detail::field_entry) +
                                        sizeof(detail::record_head) + alignof(detail::record_head);
  const std::string_view file = source_->name();
  const std::size_t text_bytes = pending_.size() + taken_bytes_;
  block_ = pool_->take(text_bytes + field_name.size() + file.size() + lines_.size() * bytes_of_line);
  std::byte* const base = block_.get()->data();
  std::size_t at = 0;
  static_cast<void>(put(base, at, pending_));
  static_cast<void>(put(base, at, rest_.substr(0, taken_bytes_)));
  if (options_.check_utf8) check_text({reinterpret_cast<const char*>(base), lines_.back().at + lines_.back().size});
  const std::size_t name_at = put(base, at, field_name), file_at = put(base, at, file);
  for (const span_of_line& one : lines_) {
    const std::size_t key_at = put(base, at, line::key_before);
    auto* const digits = reinterpret_cast<char*>(base + at);
    at += static_cast<std::size_t>(std::to_chars(digits, digits + 20, one.number).ptr - digits);
    const std::size_t key_size = at - key_at;
    at = (at + alignof(detail::record_head) - 1) & ~(alignof(detail::record_head) - 1);
    const detail::field_entry field{name_at, field_name.size(), one.at, one.size};
    const std::size_t head_at = at + sizeof field;
    const detail::record_head head{.key_at = key_at, .key_size = key_size, .shard_at = file_at,
                                   .shard_size = file.size(), .fields_at = at, .field_count = 1,
                                   .offset_bytes = offset_bytes_ + one.at, .head_at = head_at,
                                   .held_bytes = block_.get()->capacity_bytes / lines_.size()};
    std::memcpy(base + at, &field, sizeof field);
    at = head_at;
    if (heads_.empty()) block_.get()->head = base + at;
    else reinterpret_cast<detail::record_head*>(base + heads_.back())->next_at = at;
    heads_.push_back(at);
    std::memcpy(base + at, &head, sizeof head);
    at += sizeof head;
  }
}

MILLRACE_INLINE std::size_t line_reader::put(std::byte* base, std::size_t& at, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(base + at, text.data(), text.size());
  return std::exchange(at, at + text.size());
}

MILLRACE_INLINE void line_reader::check_text(std::string_view text) {
  const std::size_t good = detail::utf8_prefix_bytes(text);
  if (good == text.size()) return;
  while (!lines_.empty() && lines_.back().at > good) lines_.pop_back();
  const span_of_line bad = lines_.back();
  lines_.pop_back();
  const std::string_view found = text.substr(good, 4), begin = text.substr(bad.at, 2);
  const bool utf16 = bad.number == 1 && (begin == "\xff\xfe" || begin == "\xfe\xff");
  failure_ = nullptr;   // a line that is too long comes later
  fail(data_error("line " + std::to_string(bad.number) + " is not valid UTF-8: its byte " +
                      std::to_string(good - bad.at + 1) + " begins '" + printable(found) + "'" +
                      (utf16 ? ", the mark of UTF-16" : ""),
                  "Convert the file to UTF-8 (iconv -f " + std::string(utf16 ? "UTF-16" : "ENCODING") +
                      " -t UTF-8), or set lines_options::check_utf8 to false",
                  where(bad.number, offset_bytes_ + good)));
}

MILLRACE_INLINE data_error line_reader::too_long(std::uint64_t number, std::size_t size, std::uint64_t offset_bytes,
                                                 const char* or_more) const {
  return data_error("line " + std::to_string(number) + " has " + or_more + std::to_string(size) +
                        " bytes (expected: at most " + std::to_string(options_.max_line_bytes) + ")",
                    "Raise max_line_bytes if that is right; else this is not a file of lines",
                    where(number, offset_bytes));
}

MILLRACE_INLINE error_location line_reader::where(std::uint64_t number, std::uint64_t offset_bytes) const {
  return {.stage = stage, .shard = std::string(source_->name()),
          .key = std::string(line::key_before) + std::to_string(number), .offset_bytes = offset_bytes};
}

MILLRACE_INLINE std::string line_reader::last_line() const {
  return number_ == 0 ? ", before the first line was complete" : ", after line " + std::to_string(number_);
}

MILLRACE_INLINE void line_reader::fail(data_error known) {
  if (!failure_) failure_ = std::make_exception_ptr(std::move(known));
}

}}  // namespace millrace
