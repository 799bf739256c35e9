// Defines limits for data that may be damaged or malicious. The options of sources and images contain these limits as
// `.limits`.
//
//   auto flow = mr::shards(names, {.limits = {.max_expansion = 5'000}});
//   mr::picture p = mr::jpeg(r["jpg"], {.limits = {.max_pixels = 50'000'000}});
//
// The code that reads the data checks the limits before it allocates memory. If a limit is exceeded, this code throws
// an error that names the limit.
// Errors: none in this header. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// Limits for a shard. The selected fields of a sample are the fields that the option `.fields` of the source selects.
struct shard_limits {
  std::uint64_t max_member_bytes = std::uint64_t{1} << 30;   ///< size of one member
  std::uint64_t max_sample_bytes = std::uint64_t{4} << 30;   ///< size of a sample's selected fields, with their names
  std::uint64_t max_fields = std::uint64_t{1} << 14;         ///< number of selected fields of a sample
  /// Maximum ratio of uncompressed size to compressed size. Applies only to a shard whose uncompressed size is above 64
  /// MiB. gzip reaches a ratio of 1,032.
  std::uint64_t max_expansion = 1'100;
};

/// Limits for a file of lines.
struct line_limits {
  std::size_t max_line_bytes = std::size_t{16} << 20;           ///< size of one line
  std::uint64_t max_expansion = shard_limits{}.max_expansion;   ///< same as for a shard, if the file is compressed
};

/// Limits for an image.
struct picture_limits {
  std::uint64_t max_pixels = 178'956'970;                  ///< maximum width * height, as in Pillow
  int max_scans = 100;                                     ///< scans of a progressive JPEG; each covers the full image
  std::size_t max_memory_bytes = std::size_t{512} << 20;   ///< memory of libjpeg for one JPEG
};

}}   // namespace millrace
