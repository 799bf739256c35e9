// What a resume point knows of a source without an index: which data it has, and whether its files were changed.
//
//   std::uint64_t data = fingerprint_of(source);     // of names and sizes: another one is refused
//   std::uint32_t times = times_of(source);          // of when files were changed: another one is told
//
// Threads: pure.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/base/text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Of the names and sizes of the parts, as far as the source says them, and of their number.
template <class Source>
std::uint64_t fingerprint_of(const Source& source) {
  std::uint64_t sum = source.shards();
  for (std::size_t i = 0; i < source.shards(); ++i) {
    if constexpr (requires { source.shard_name(i); }) {
      const std::string path = source.shard_name(i), name = path.substr(path.rfind('/') + 1);
      sum = combine_keys(sum, digest_bytes(detail::bytes_of(name)));
    }
    if constexpr (requires { source.shard_bytes(i); }) sum = combine_keys(sum, source.shard_bytes(i));
  }
  return sum;
}

/// Of when the parts were last changed, as far as the source says it; 0: it does not.
template <class Source>
std::uint32_t times_of(const Source& source) {
  std::uint64_t sum = 0;
  if constexpr (requires { source.shard_modified_ns(std::size_t{}); })
    for (std::size_t i = 0; i < source.shards(); ++i)
      if (const std::int64_t time = source.shard_modified_ns(i))
        sum = combine_keys(combine_keys(sum, i), static_cast<std::uint64_t>(time));
  return static_cast<std::uint32_t>(sum >> 32);
}

}}  // namespace millrace
