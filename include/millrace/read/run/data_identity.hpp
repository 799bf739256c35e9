// Computes the part of a resume point that identifies the data of a source without an index: names, sizes and times.
//
//   std::uint64_t data = mr::detail::fingerprint_of(source);   // names and sizes; must be equal on resume
//   std::uint32_t times = mr::detail::file_times_of(source);        // file times; a notice reports a difference
//
// Threads: pure functions.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/base/text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a hash of the number of shards, their file names (without folders) and their sizes in bytes. Omits names and
/// sizes that the source does not report. source.choice() is a digest of the options that choose samples. If it is not
/// 0, it is also part of the hash.
template <class Source>
MILLRACE_RARE std::uint64_t fingerprint_of(const Source& source) {
  std::uint64_t sum = source.shards();
  for (std::size_t i = 0; i < source.shards(); ++i) {
    if constexpr (requires { source.shard_name(i); }) {
      const std::string path = source.shard_name(i), name = path.substr(path.rfind('/') + 1);
      sum = combine_keys(sum, digest_bytes(bytes_of(name)));
    }
    if constexpr (requires { source.shard_bytes(i); }) sum = combine_keys(sum, source.shard_bytes(i));
  }
  if constexpr (requires { source.choice(); })
    if (const std::uint64_t choice = source.choice()) sum = combine_keys(sum, choice);
  return sum;
}

/// Returns a hash of the shards' modification times, or 0 if the source does not report times.
template <class Source>
std::uint32_t file_times_of(const Source& source) {
  std::uint64_t sum = 0;
  if constexpr (requires { source.shard_modified_ns(std::size_t{}); })
    for (std::size_t i = 0; i < source.shards(); ++i)
      if (const std::int64_t time = source.shard_modified_ns(i))
        sum = combine_keys(combine_keys(sum, i), static_cast<std::uint64_t>(time));
  return static_cast<std::uint32_t>(sum >> 32);
}

}}}   // namespace millrace::detail
