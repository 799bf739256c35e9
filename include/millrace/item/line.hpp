// One line of a text file: a text that keeps the memory it lies in, and where it stands.
//
//   std::vector<std::uint32_t> tokenize(std::string_view text);        // a line goes where a string_view is wanted
//   auto flow = mr::lines("corpus-{0000..1023}.txt.gz") | mr::map(tokenize) | ...
//   one.text();  one.file();  one.number();                            // "To be, ...", "corpus-0017.txt.gz", 12
//
// Without its end of line ("\n" or "\r\n"). Lines that were read together share a block, so that they cost no
// allocation. Threads and lifetime: as `bytes`; text() is good for as long as the line, or its field(), lives.
#pragma once

#include <millrace/item/record.hpp>

#include <charconv>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

class line {
 public:
  line() = default;
  /// For sources: a record with one field, whose key is key_before and the number.
  explicit line(record from) noexcept : from_(std::move(from)), text_(from_.field(0).text()) {}

  static constexpr std::string_view key_before = "line ";

  std::string_view text() const noexcept { return text_; }
  operator std::string_view() const noexcept { return text_; }
  std::size_t size() const noexcept { return text_.size(); }
  bool empty() const noexcept { return text_.empty(); }
  /// The same as bytes: for columns, and for functions that take a record's field.
  bytes field() const noexcept { return from_.field(0); }

  std::string_view file() const noexcept { return from_.shard(); }
  /// Counted from 1, empty ones too.
  std::uint64_t number() const noexcept {
    const std::string_view key = from_.key();
    std::uint64_t number = 0;
    if (key.size() > key_before.size())
      std::from_chars(key.data() + key_before.size(), key.data() + key.size(), number);
    return number;
  }
  /// "corpus-0017.txt.gz:12": what batch({.keys = true}) calls it.
  std::string key() const { return std::string(file()) + ":" + std::to_string(number()); }
  /// Where it begins in the (uncompressed) file.
  std::uint64_t offset_bytes() const noexcept { return from_.offset_bytes(); }

  /// What errors name: file, line and offset.
  record origin() const noexcept { return from_; }
  std::size_t held_bytes() const noexcept { return from_.held_bytes(); }

 private:
  record from_;
  std::string_view text_;
};

}}  // namespace millrace
