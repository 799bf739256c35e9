// A set index: one small file that describes all shards of a set. With a set index, a run need not request the size and
// version of each shard when it starts.
//
//   const auto index = mr::detail::set_index::parse(std::string(text), "s3://photos/set.millrace-index");
//   if (const auto shard = index.find("s3://photos/train-007.tar")) shard->samples;
//   write(index.text());
//
// Format: a text with three kinds of lines.
// - The first line is "millrace set index 1".
// - Each shard has one line. The lines are sorted by name. The words of a line are: the shard's size in bytes, the
//   number of samples, the digest of the shard's members (16 hexadecimal digits), the size in bytes of the shard's
//   index without entry points, "marked" or "unmarked", the version, and the name. "unmarked" means that the shard has
//   no end marker. An unknown version is "-". Blanks, "%" and bytes that are not printable ASCII are written as %XX.
// - The last line has "end", the number of shards, and the CRC-32C of all bytes before this line (8 hexadecimal
//   digits).
//
// A name is the full name of a shard, or the part of the full name after one of its slashes. Therefore a set and its
// set index may be moved or copied together. If several names match a shard, the longest name is used. The file is
// untrusted input. A run checks each shard and each index against the set index before use.
// Memory: the text, and 4 bytes per shard.
// Errors: data_error with the file and the offset. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The description of a shard in a set index.
struct set_index_shard {
  std::string name{};
  std::uint64_t size_bytes = 0;
  std::uint64_t samples = 0;
  /// Digest from the index of the shard. Shards with equal members at equal offsets have the same digest.
  std::uint64_t fingerprint = 0;
  std::uint64_t index_bytes = 0;   ///< size of the shard's index file without entry points
  bool without_end_marker = false;
  std::string version{};   ///< version of the shard's file; empty if unknown

  friend bool operator==(const set_index_shard&, const set_index_shard&) = default;
};

/// The shards of a set, sorted by their names.
class set_index {
 public:
  static constexpr std::string_view default_name = "set.millrace-index";   ///< name of the file in the shards' folder
  static constexpr std::size_t max_bytes = std::size_t{256} << 20;         ///< maximum size of a file

  set_index() : set_index(std::vector<set_index_shard>()) {}
  /// Accepts the shards in any order. Requires that their names differ.
  explicit set_index(std::vector<set_index_shard> shards);

  /// Returns whether a text begins like a set index of any version.
  static bool has_mark(std::string_view text) noexcept;
  /// Parses the content of a file. Throws data_error, which names `path`, if the content is not a valid set index.
  static set_index parse(std::string text, const std::string& path);
  /// Returns the set index as text, which is the content of its file.
  const std::string& text() const noexcept { return text_; }

  /// Returns the number of shards.
  std::size_t size() const noexcept { return lines_.size(); }
  /// Returns the descriptions of all shards.
  std::vector<set_index_shard> shards() const;
  /// Returns the description of a shard, or nothing if the set index does not contain it.
  std::optional<set_index_shard> find(std::string_view shard) const {
    std::size_t nearby = 0;
    return find_from(nearby, shard);
  }
  /// Returns the result of find(). This function is faster for shards in sorted order. Initialize a variable `nearby`
  /// to 0, and pass the variable to all calls.
  std::optional<set_index_shard> find_from(std::size_t& nearby, std::string_view shard) const;

 private:
  struct checked {
    std::string text{};
    std::vector<std::uint32_t> lines{};
    std::size_t slashes = 0;
  };
  explicit set_index(checked from) noexcept
      : text_(std::move(from.text)), lines_(std::move(from.lines)), slashes_(from.slashes) {}
  friend class set_index_parser;

  std::string_view line(std::size_t shard) const noexcept;
  set_index_shard decoded(std::size_t shard) const;
  int compare_name(std::size_t shard, std::string_view with) const;

  std::string text_;
  std::vector<std::uint32_t> lines_;   // start of each shard's line
  std::size_t slashes_ = 0;            // largest number of slashes in a name
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/set_index.inl>
#endif
