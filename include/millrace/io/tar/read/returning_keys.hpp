// Detects returning keys: keys of samples whose members are not adjacent in their shard.
//
//   mr::detail::key_memory keys;                       // of one shard
//   if (keys.is_returning("n01/0017")) ++pieces;       // an earlier sample had this key, and another key followed
//   keys.returned();                                   // the number of samples for which is_returning() was true
//
// `tar -cf a.tar .` writes files in the order in which the system lists the folder. All .jpg files may then precede all
// .cls files, and each sample becomes two samples. `tar --sort=name` writes the members of a sample next to each other.
// Memory: 16 bytes per key, at most 8 MiB. If a shard has more than 524,288 keys, only a part of the keys is stored,
// and returned() is an estimate.
// Errors: std::bad_alloc. Threads: not thread-safe. Cost: about 20 ns per key.
#pragma once

#include <millrace/io/file/byte_source.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class event_counts;

namespace detail {

class shard_index;

/// Stores digests of the keys of one shard.
class key_memory {
 public:
  explicit key_memory(std::size_t max_keys = std::size_t{1} << 19) : max_keys_(max_keys) {}

  /// Records that a sample with this key begins. Returns whether the object has stored this key for an earlier sample.
  bool is_returning(std::string_view key);

  /// Returns the number of samples with the key of an earlier sample.
  std::uint64_t returned() const noexcept { return returned_; }
  /// Returns whether returned() is exact.
  bool exact() const noexcept { return weight_ == 1; }

 private:
  static constexpr std::uint64_t empty = 0;

  bool insert(std::uint64_t digest);
  void grow();

  std::size_t max_keys_, keys_ = 0;
  std::vector<std::uint64_t> table_;   // digests, in a hash table with open addressing
  std::uint64_t weight_ = 1;           // one key in `weight_` keys is stored
  std::uint64_t returned_ = 0;
};

/// Adds `samples`, the number of samples with the key of an earlier sample, to `counts`. Posts a notice about the first
/// such shard of a run.
void report_returning_keys(event_counts& counts, std::uint64_t samples, std::string_view shard) noexcept;

/// Another part of a sample whose members are not adjacent.
struct other_piece {
  std::uint64_t offset_bytes = 0;
  std::string fields{};   ///< names of the fields, such as "'cls', 'json'"
};

/// Searches the headers in the first `max_bytes` bytes of a shard for another part of the sample `key`. Skips the part
/// that begins at `own_offset_bytes`. The search ends at damage. Returns the first match, or nothing.
std::optional<other_piece> find_other_piece_of_sample(std::unique_ptr<byte_source> source, std::string_view key,
                                                      std::uint64_t own_offset_bytes, std::uint64_t max_bytes);

/// Returns a clause about `piece`. The error for a missing field of the sample at `own_offset_bytes` ends with this
/// clause.
std::string text_of(const other_piece& piece, std::uint64_t own_offset_bytes);

}
}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/returning_keys.inl>
#endif
