// Reads the lines of one text file, plain or compressed, in order.
//
//   mr::line_reader file(std::make_unique<mr::file_source>("corpus-0000.txt.gz"), pool, {.max_line_bytes = 1 << 20});
//   while (auto line = file.next()) use(line->text(), line->number());
//
// A line ends at "\n" or "\r\n"; the last line needs no end. A byte order mark at the start of the file is dropped.
// The compression is recognized by content: gzip, bzip2, xz, zstd, lz4. A file that is empty, or that holds only a byte
// order mark, has no lines.
// Errors: data_error with file, line and offset for text that is not UTF-8 and for a line that is too long. A
// compressed stream that is damaged or cut off is a late_data_error: earlier lines of that file may be wrong.
// The complete lines before an error are delivered first. Every call after the error throws it again.
// Memory: one block for about 64 KiB of text, which is copied once. Nothing is allocated once block sizes repeat.
// Threads: one at a time. Lifetime: the pool outlives the reader.
#pragma once

#include <millrace/base/text.hpp>
#include <millrace/io/tar/shard_stream.hpp>
#include <millrace/item/line.hpp>
#include <millrace/measure/event_counts.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of line_reader.
struct line_reader_options {
  std::size_t max_line_bytes = std::size_t{16} << 20;   ///< longest line allowed, in bytes; a longer one is an error
  bool skip_empty = false;                              ///< counts empty lines, but does not deliver them
  bool check_utf8 = true;                               ///< makes text that is not UTF-8 an error
};

/// Reads the lines of one file.
class line_reader {
 public:
  line_reader(std::unique_ptr<byte_source> source, block_pool& pool, line_reader_options options = {})
      : options_(options),
        source_(std::move(source)),
        pool_(&pool),
        stream_(std::make_unique<detail::shard_stream>(
            *source_, pool, detail::shard_stream::content{.stage = stage, .may_be_empty = true})) {}

  /// Returns the next line; nothing at the end of the file. Throws data_error or late_data_error (see above).
  std::optional<line> next() {
    while (at_ == heads_.size()) {
      if (failure_) std::rethrow_exception(failure_);
      if (ended_) return std::nullopt;
      read_block();
    }
    const auto* const head = reinterpret_cast<const detail::record_head*>(block_.get()->data() + heads_[at_++]);
    return line(record(at_ == heads_.size() ? std::move(block_) : block_, head));
  }

  /// Adds the number of skipped empty lines to `counts`.
  void report(detail::event_counts& counts) const noexcept {
    if (empty_lines_ > 0) counts.count("empty lines passed over", empty_lines_);
  }

 private:
  static constexpr const char* stage = "lines";
  static constexpr std::size_t block_bytes = std::size_t{64} << 10, block_lines = 512;
  static constexpr std::string_view field_name = "line", byte_order_mark = "\xef\xbb\xbf";

  /// One line of the next block.
  struct span_of_line {
    std::size_t at, size;   // in the text of the block, in bytes
    std::uint64_t number;
  };

  void read_block() {
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

  /// Reads on until `rest_` has an end of line or the file ends. Moves earlier text into `pending_`.
  void find_line_end() {
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

  /// Finds the lines in `pending_` followed by `rest_`. Sets how many bytes of `rest_` the block takes: `taken_bytes_`.
  void find_lines() {
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

  void add_line(std::size_t begin, std::size_t end) {
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

  /// Lays out the block: the text, the names, then the number, the field and the head of each line.
  void make_block() {
    constexpr std::size_t bytes_of_line = line::key_before.size() + 20 + sizeof(detail::field_entry) +
                                          sizeof(detail::record_head) + alignof(detail::record_head);
    const std::string_view file = source_->name();
    const std::size_t text_bytes = pending_.size() + taken_bytes_;
    block_ = pool_->take(text_bytes + field_name.size() + file.size() + lines_.size() * bytes_of_line);
    std::byte* const base = block_.get()->data();
    std::size_t at = 0;
    static_cast<void>(put(base, at, pending_));
    static_cast<void>(put(base, at, rest_.substr(0, taken_bytes_)));
    if (options_.check_utf8) check_text({reinterpret_cast<const char*>(base), text_bytes});
    const std::size_t name_at = put(base, at, field_name), file_at = put(base, at, file);
    for (const span_of_line& one : lines_) {
      const std::size_t key_at = put(base, at, line::key_before);
      auto* const digits = reinterpret_cast<char*>(base + at);
      at += static_cast<std::size_t>(std::to_chars(digits, digits + 20, one.number).ptr - digits);
      const std::size_t key_size = at - key_at;
      at = (at + alignof(detail::record_head) - 1) & ~(alignof(detail::record_head) - 1);
      const detail::field_entry field{name_at, field_name.size(), one.at, one.size};
      const detail::record_head head{.key_at = key_at, .key_size = key_size, .shard_at = file_at,
                                     .shard_size = file.size(), .fields_at = at, .field_count = 1,
                                     .offset_bytes = offset_bytes_ + one.at, .next_at = 0,
                                     .records_in_block = lines_.size()};
      std::memcpy(base + at, &field, sizeof field);
      at += sizeof field;
      if (heads_.empty()) block_.get()->head = base + at;
      else reinterpret_cast<detail::record_head*>(base + heads_.back())->next_at = at;
      heads_.push_back(at);
      std::memcpy(base + at, &head, sizeof head);
      at += sizeof head;
    }
  }

  static std::size_t put(std::byte* base, std::size_t& at, std::string_view text) noexcept {
    if (!text.empty()) std::memcpy(base + at, text.data(), text.size());
    return std::exchange(at, at + text.size());
  }

  /// Removes the first line that is not UTF-8 and all lines after it, and records the error.
  void check_text(std::string_view text) {
    const std::size_t good = detail::utf8_prefix_bytes(text);
    if (good == text.size()) return;
    while (!lines_.empty() && lines_.back().at > good) lines_.pop_back();
    const span_of_line bad = lines_.back();
    lines_.pop_back();
    const std::string_view found = text.substr(good, 4), begin = text.substr(bad.at, 2);
    const bool utf16 = bad.number == 1 && (begin == "\xff\xfe" || begin == "\xfe\xff");
    fail(data_error("line " + std::to_string(bad.number) + " is not valid UTF-8: its byte " +
                        std::to_string(good - bad.at + 1) + " begins '" + printable(found) + "'" +
                        (utf16 ? ", the mark of UTF-16" : ""),
                    "Convert the file to UTF-8 (iconv -f " + std::string(utf16 ? "UTF-16" : "ENCODING") +
                        " -t UTF-8), or set lines_options::check_utf8 to false",
                    where(bad.number, offset_bytes_ + good)));
  }

  data_error too_long(std::uint64_t number, std::size_t size, std::uint64_t offset_bytes,
                      const char* or_more = "") const {
    return data_error("line " + std::to_string(number) + " has " + or_more + std::to_string(size) +
                          " bytes (expected: at most " + std::to_string(options_.max_line_bytes) + ")",
                      "Raise max_line_bytes if that is right; else this is not a file of lines",
                      where(number, offset_bytes));
  }
  error_location where(std::uint64_t number, std::uint64_t offset_bytes) const {
    return {.stage = stage, .shard = std::string(source_->name()),
            .key = std::string(line::key_before) + std::to_string(number), .offset_bytes = offset_bytes};
  }
  std::string last_line() const {
    return number_ == 0 ? ", before the first line was complete" : ", after line " + std::to_string(number_);
  }
  void fail(data_error known) {
    if (!failure_) failure_ = std::make_exception_ptr(std::move(known));
  }

  line_reader_options options_;
  std::unique_ptr<byte_source> source_;
  block_pool* pool_;
  std::unique_ptr<detail::shard_stream> stream_;
  std::string pending_;            // start of a line, from earlier chunks
  std::string_view rest_;          // unread rest of the current chunk
  std::size_t taken_bytes_ = 0;    // bytes of `rest_` that the next block takes
  std::uint64_t offset_bytes_ = 0;   // offset of `pending_` in the file
  std::uint64_t number_ = 0;       // number of the last line found
  std::uint64_t empty_lines_ = 0;
  std::vector<span_of_line> lines_;
  detail::block_ref block_;
  std::vector<std::size_t> heads_;   // offsets in the block: heads of the lines to deliver
  std::size_t at_ = 0;             // index in `heads_` of the next line
  bool ended_ = false;
  std::exception_ptr failure_;
};


}}  // namespace millrace
