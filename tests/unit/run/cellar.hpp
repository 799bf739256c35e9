// Files in memory as a storage, which counts its calls; and shards that are both there and in a folder.
#pragma once

#include "indexed_runs.hpp"

#include <millrace/io/file/storage.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace cellars {

namespace mr = millrace;

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct stored_content {
  std::string text{}, version = "1";
};

/// Files in memory, and statistics of calls.
struct cellar {
  std::map<std::string, stored_content> files{};
  std::mutex mutex{};
  std::atomic<std::uint64_t> shard_bytes{0}, finds{0}, surprise_reads{0}, announced_reads{0};
  std::uint64_t cut_at = ~std::uint64_t{0};   ///< reads end there
  std::vector<std::string> opened{};          ///< names, guarded by the mutex

  /// Copies the files of a folder to cellar://box/NAME.
  explicit cellar(const std::string& folder) {
    for (const auto& f : std::filesystem::directory_iterator(folder))
      files["cellar://box/" + f.path().filename().string()] = {.text = text_of(f.path())};
  }
};

struct cellar_file {
  std::shared_ptr<cellar> from;
  std::string name;
  stored_content content;
  std::vector<mr::byte_range> announced{};

  mr::file_identity identity() const { return {.size_bytes = content.text.size(), .version = content.version}; }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
    const std::uint64_t end = std::min<std::uint64_t>(content.text.size(), from->cut_at);
    if (offset_bytes >= end) return 0;
    const std::size_t count = std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(end - offset_bytes));
    std::memcpy(buffer.data(), content.text.data() + offset_bytes, count);
    if (name.ends_with(".tar")) {
      from->shard_bytes += count;
      const bool was_announced = std::any_of(announced.begin(), announced.end(), [&](const mr::byte_range& r) {
        return offset_bytes >= r.offset_bytes && offset_bytes - r.offset_bytes < r.size_bytes &&
               count <= r.size_bytes - (offset_bytes - r.offset_bytes);
      });
      ++(was_announced ? from->announced_reads : from->surprise_reads);
    }
    return count;
  }
  void will_read(std::span<const mr::byte_range> ranges) { announced.assign(ranges.begin(), ranges.end()); }
};

/// The minimal interface of a storage.
struct plain_storage {
  std::shared_ptr<cellar> from;

  std::unique_ptr<cellar_file> open(const std::string& name) const {
    const std::lock_guard lock(from->mutex);
    from->opened.push_back(name);
    return look_at(name);
  }
  std::unique_ptr<cellar_file> look_at(const std::string& name) const {
    const auto entry = from->files.find(name);
    if (entry == from->files.end()) return nullptr;
    return std::make_unique<cellar_file>(cellar_file{from, name, entry->second});
  }
};

/// One that can also list names, and find a file without opening it.
struct listing_storage : plain_storage {
  std::vector<std::string> list(const std::string& prefix) const {
    std::vector<std::string> names;
    for (const auto& [name, file] : from->files)
      if (name.starts_with(prefix)) names.push_back(name);
    return names;
  }
  std::optional<mr::file_identity> find(const std::string& name) const {
    ++from->finds;
    const std::lock_guard lock(from->mutex);
    const auto file = look_at(name);
    return file ? std::optional(file->identity()) : std::nullopt;
  }
};

/// Shards in a folder without indexes, and the same ones in a storage.
struct both_places {
  temporary_folder folder{};
  std::string local = indexed_runs::write_shards(folder);
  std::shared_ptr<cellar> files = std::make_shared<cellar>(folder.path());

  mr::shards_options options() const { return {.storage = listing_storage{{files}}}; }
  static constexpr const char* remote = "cellar://box/";

  /// Copies a file of the folder.
  void copy(const std::string& name) const {
    files->files[remote + name].text = text_of(std::filesystem::path(folder.path()) / name);
  }
  /// Builds the indexes in the folder, and copies them.
  void copy_indexes() const {
    load_indexes(local);
    for (const auto& f : std::filesystem::directory_iterator(folder.path())) copy(f.path().filename().string());
  }
};

inline std::string message_of(const auto& act) {
  try {
    act();
  } catch (const mr::error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace cellars
