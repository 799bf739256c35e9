// Inspects a cache on a local disk. Lists the cached files and the cached share of each file, and checks the checksums.
//
//   const mr::cache_contents contents = mr::contents_of_cache("/scratch/mr");
//   for (const auto& file : contents.files)
//     std::printf("%s: %.1f %%\n", mr::printable(file.name).c_str(), 100 * file.share());
//
// The function inspects only the cache of the current user. The function changes nothing, and may run while other
// processes use the cache.
// Errors: setup_error if the folder has no cache of this user. Threads: any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The cached part of one version of a file.
struct cache_contents_file {
  std::string name{}, version{};
  std::uint64_t size_bytes = 0;       ///< size of the file
  std::uint64_t cached_bytes = 0;     ///< cached bytes of the file, in undamaged blocks
  std::uint64_t blocks = 0;           ///< undamaged blocks
  std::uint64_t damaged_blocks = 0;   ///< blocks with a wrong checksum; the next read fetches them again
  std::int64_t used_ns = 0;           ///< time of the last use, in ns since 1970

  /// Returns the share of the file that is cached.
  double share() const noexcept {
    return size_bytes == 0 ? 0 : static_cast<double>(cached_bytes) / static_cast<double>(size_bytes);
  }
};

/// The contents of a cache.
struct cache_contents {
  std::vector<cache_contents_file> files{};   ///< sorted by name and version
  std::uint64_t disk_bytes = 0;               ///< all bytes that the cache uses on the disk
  std::uint64_t blocks = 0;                   ///< all blocks
  /// All blocks with a wrong checksum, or with an invalid head (the description at the start of a block's file).
  /// `files` does not count blocks with an invalid head.
  std::uint64_t damaged_blocks = 0;
  std::uint64_t parts = 0;   ///< incomplete blocks: still being written, or left by a killed process
};

/// Returns the contents of the cache in a folder. If `check` is false, the function checks the heads of blocks, but not
/// their data. Throws setup_error.
cache_contents contents_of_cache(const std::string& folder, bool check = true);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/cache/impl/cache_contents.inl>
#endif
