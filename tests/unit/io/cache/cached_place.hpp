// A cache in its own folder over files in memory, with small blocks.
#pragma once

#include "../../../temporary_folder.hpp"
#include "distant_files.hpp"

#include <millrace/io/cache/cached_storage.hpp>

#include <memory>
#include <string>
#include <vector>

struct cached_place {
  static constexpr millrace::detail::cache_layout layout{.block_bytes = 4096, .chunk_bytes = 512};
  static constexpr std::uint64_t block_on_disk = 8192;   // with its head

  temporary_folder folder{};
  std::shared_ptr<distant_files> below = std::make_shared<distant_files>();
  std::vector<std::string> notices{};
  millrace::cache_options options{.folder = folder.path(), .keep_free_share = 0,
                                  .notice = [this](const millrace::notice& n) {
                                    if (n.kind == millrace::notice_kind::cache) notices.push_back(n.text);
                                  }};

  std::unique_ptr<millrace::detail::cached_storage> cache() const {
    return std::make_unique<millrace::detail::cached_storage>(below, options, layout);
  }
  /// The files of blocks and parts.
  std::vector<millrace::detail::cache_entry> entries() const {
    return millrace::detail::list_cache(millrace::detail::cache_root(folder.path()));
  }
  std::vector<std::string> block_paths() const {
    std::vector<std::string> paths;
    for (const auto& entry : entries()) paths.push_back(entry.path);
    return paths;
  }
  std::uint64_t cached_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& entry : entries()) sum += entry.bytes;
    return sum;
  }
  const std::string& text(const std::string& name) const { return below->files.at(name).text; }
  /// The path of the first block of a file; empty if it is not cached.
  std::string path_of(const std::string& name) const {
    const millrace::detail::cached_object object{.name = name, .identity = *below->find(name)};
    for (const std::string& path : block_paths())
      if (millrace::detail::open_cache_block(path).belongs_to(object, 0, layout)) return path;
    return {};
  }
};

inline void sleep_ms(long ms) {
  const timespec delay{ms / 1000, ms % 1000 * 1'000'000L};
  ::nanosleep(&delay, nullptr);
}
