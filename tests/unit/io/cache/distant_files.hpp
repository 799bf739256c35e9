// Files in memory in the place of a remote storage: reads are counted, and may be slow or fail. A cache over them.
#pragma once

#include "../../../temporary_folder.hpp"

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/io/cache/cached_storage.hpp>
#include <millrace/io/file/storage.hpp>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <time.h>

struct distant_files final : millrace::storage_interface {
  struct content {
    std::string text{}, version = "1";
  };
  struct file final : millrace::stored_file {
    distant_files& from;
    std::string title;
    content what;

    file(distant_files& f, std::string n, content c) : from(f), title(std::move(n)), what(std::move(c)) {}
    std::string_view name() const noexcept override { return title; }
    millrace::file_identity identity() const override { return {what.text.size(), what.version}; }
    std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
      ++from.reads;
      if (from.delay_ms > 0) {
        const timespec delay{from.delay_ms / 1000, from.delay_ms % 1000 * 1'000'000L};
        ::nanosleep(&delay, nullptr);
      }
      const std::uint64_t end = std::min<std::uint64_t>(what.text.size(), from.cut_at);
      if (offset_bytes >= from.fails_from) throw millrace::io_error("the line is dead", "Wait", {.shard = title});
      if (offset_bytes >= end) return 0;
      std::size_t count = std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(end - offset_bytes));
      count = std::min<std::size_t>(count, from.max_read);
      if (from.fails_from != ~std::uint64_t{0}) count = std::min<std::size_t>(count, from.fails_from - offset_bytes);
      std::memcpy(buffer.data(), what.text.data() + offset_bytes, count);
      from.read_bytes += count;
      return count;
    }
    void will_read(std::span<const millrace::byte_range> ranges) override {
      for (const millrace::byte_range& r : ranges)
        from.announced += std::to_string(r.offset_bytes) + "+" + std::to_string(r.size_bytes) + " ";
    }
  };

  std::map<std::string, content> files{};
  std::mutex mutex{};
  std::atomic<std::uint64_t> read_bytes{0}, reads{0}, opened{0};
  std::atomic<std::uint64_t> fails_from{~std::uint64_t{0}}, cut_at{~std::uint64_t{0}};
  std::size_t max_read = ~std::size_t{0};
  std::string announced{};   // ranges that will be read; of tests with one thread
  int delay_ms = 0;

  std::unique_ptr<millrace::stored_file> open(const std::string& name) override {
    const std::lock_guard lock(mutex);
    const auto entry = files.find(name);
    if (entry == files.end()) return nullptr;
    ++opened;
    return std::make_unique<file>(*this, name, entry->second);
  }
  std::optional<millrace::file_identity> find(const std::string& name) override {
    const std::lock_guard lock(mutex);
    const auto entry = files.find(name);
    if (entry == files.end()) return std::nullopt;
    return millrace::file_identity{entry->second.text.size(), entry->second.version};
  }
  std::vector<std::string> list(const std::string& prefix) override {
    std::vector<std::string> names;
    for (const auto& [name, what] : files)
      if (name.starts_with(prefix)) names.push_back(name);
    return names;
  }

  /// Adds a file whose bytes depend on its name, its version and their offset.
  void add(const std::string& name, std::size_t bytes, const std::string& version = "1") {
    files[name] = {.text = text_of_file(name + version, bytes), .version = version};
  }
  static std::string text_of_file(const std::string& seed, std::size_t bytes) {
    std::uint64_t state = std::hash<std::string>{}(seed);
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(millrace::detail::mix_bits(++state));
    return text;
  }
};

/// Reads a complete file, `step` bytes at a time.
inline std::string read_complete(millrace::storage_interface& from, const std::string& name, std::size_t step = 1000) {
  const auto file = from.open(name);
  if (!file) return "none";
  std::string text, buffer(step, '\0');
  while (const std::size_t got = file->read_at(text.size(), std::as_writable_bytes(std::span(buffer))))
    text.append(buffer, 0, got);
  return text;
}

/// A cache in its own folder over files in memory, with small blocks.
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
