// Definitions for cache_contents.hpp.
#pragma once

#include <millrace/io/cache/cache_contents.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/cache/cache_block.hpp>
#include <millrace/io/cache/cache_ledger.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE cache_contents contents_of_cache(const std::string& folder, bool check) {
  const std::string root = detail::cache_root(folder);
  struct ::stat status{};
  if (::lstat(root.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    throw setup_error("'" + printable(folder) + "' does not contain a cache of this user",
                      "Pass the same folder as in cache_options::folder");
  cache_contents contents;
  std::map<std::pair<std::string, std::string>, cache_contents_file> files;
  for (const detail::cache_entry& entry : detail::list_cache(root)) {
    contents.disk_bytes += entry.bytes;
    if (entry.name.is_part) {
      ++contents.parts;
      continue;
    }
    detail::cache_block block = detail::open_cache_block(entry.path);
    if (!block) continue;   // another process evicted the block
    ++contents.blocks;
    const bool good = block.has_valid_head() && (!check || block.check_all());
    contents.damaged_blocks += !good;
    if (!block.has_valid_head()) continue;
    const detail::cache_block_head& head = block.head();
    const file_identity& identity = head.object.identity;
    cache_contents_file& file = files[{head.object.name, identity.version}];
    file.name = head.object.name;
    file.version = identity.version;
    file.size_bytes = identity.size_bytes;
    file.cached_bytes += good ? head.data_bytes : 0;
    file.blocks += good;
    file.damaged_blocks += !good;
    file.used_ns = std::max(file.used_ns, entry.used_ns);
  }
  for (auto& [name, file] : files) contents.files.push_back(std::move(file));
  return contents;
}

}}   // namespace millrace
