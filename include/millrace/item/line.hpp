// line: one line of a text file. The object keeps its memory alive, and stores the name of the file and the line
// number.
//
//   std::vector<std::uint32_t> tokenize(std::string_view text);        // a line converts to a string_view
//   auto flow = mr::lines("corpus-{0000..1023}.txt.gz") | mr::map(tokenize);
//   one.text();  one.file();  one.number();                            // "To be, ...", "corpus-0017.txt.gz", 12
//
// The text excludes the end of line ("\n" or "\r\n"). Lines that were read together share a block of memory.
// Threads: the same rules as for `bytes`. Lifetime: text() is valid as long as the line, or the result of field(),
// lives.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/record.hpp>

#include <charconv>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// One line of a text file.
class line {
 public:
  /// Creates an empty line without a record.
  line() = default;
  /// Creates a line from a record, for sources. The record has one field; the record's key is key_before followed by
  /// the line number.
  explicit line(record from) noexcept : from_(std::move(from)), text_(from_.field(0).text()) {}

  /// The text before the number in the key of the record.
  static constexpr std::string_view key_before = "line ";

  /// Returns the text without its end of line.
  std::string_view text() const noexcept { return text_; }
  /// Returns text().
  operator std::string_view() const noexcept { return text_; }
  /// Returns the number of bytes of the text.
  std::size_t size() const noexcept { return text_.size(); }
  /// Returns true if the text is empty.
  bool empty() const noexcept { return text_.empty(); }
  /// Returns the text as bytes, for columns and for functions that accept a record's field.
  bytes field() const noexcept { return from_.field(0); }

  /// Returns the name of the file.
  std::string_view file() const noexcept { return from_.shard(); }
  /// Returns the line number, from 1; empty lines count too.
  std::uint64_t number() const noexcept {
    const std::string_view key = from_.key();
    std::uint64_t number = 0;
    if (key.size() > key_before.size())
      std::from_chars(key.data() + key_before.size(), key.data() + key.size(), number);
    return number;
  }
  /// Returns "corpus-0017.txt.gz:12", the key in batch({.keys = true}).
  std::string key() const { return std::string(file()) + ":" + std::to_string(number()); }
  /// Returns the offset of the line in the uncompressed file.
  std::uint64_t offset_bytes() const noexcept { return from_.offset_bytes(); }

  /// Returns the record of the line, which contains file, line and offset for errors.
  record origin() const noexcept { return from_; }
  /// Returns the number of bytes that count as memory of this line: the size of its block, divided by the number of
  /// lines in the block.
  std::size_t held_bytes() const noexcept { return from_.held_bytes(); }

 private:
  record from_;
  std::string_view text_;
};

}}   // namespace millrace
