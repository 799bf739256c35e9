// Limits of data that may be damaged or malicious. The options of sources and images have them as `.limits`.
//
//   auto flow = mr::shards(names, {.limits = {.max_expansion = 5'000}});
//   mr::picture p = mr::jpeg(r["jpg"], {.limits = {.max_pixels = 50'000'000}});
//
// They are checked before memory is allocated. The error names the limit.
// Errors: none here. Threads: values.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// Limits of a shard.
struct shard_limits {
  std::uint64_t max_member_bytes = std::uint64_t{1} << 30;   ///< of one member
  std::uint64_t max_sample_bytes = std::uint64_t{4} << 30;   ///< of the selected fields of a sample, and their names
  std::uint64_t max_fields = std::uint64_t{1} << 14;         ///< selected fields of a sample
  /// How many times its size a compressed shard may grow to, if that is more than 64 MiB. gzip reaches 1,032.
  std::uint64_t max_expansion = 1'100;
};

/// Limits of a file of lines.
struct line_limits {
  std::size_t max_line_bytes = std::size_t{16} << 20;           ///< of one line
  std::uint64_t max_expansion = shard_limits{}.max_expansion;   ///< of a compressed file, as for a shard
};

/// Limits of an image.
struct picture_limits {
  std::uint64_t max_pixels = 178'956'970;                  ///< largest width * height; Pillow's limit for an error
  int max_scans = 100;                                     ///< scans of a progressive JPEG; each covers the full image
  std::size_t max_memory_bytes = std::size_t{512} << 20;   ///< memory of libjpeg for one JPEG
};

}}  // namespace millrace
