// A cache on a disk, and its content after a kill.
#include "kills_subject.hpp"

#include "../../unit/io/cache/distant_files.hpp"

#include <millrace/io/cache/cached_storage.hpp>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace mr = millrace;

namespace {

constexpr mr::detail::cache_layout layout{.block_bytes = 16384, .chunk_bytes = 4096};
constexpr std::uint64_t limit_bytes = 24 * (16384 + 4096), object_count = 20;

std::string name_of(std::uint64_t n) { return "far://" + std::to_string(n % object_count); }

std::shared_ptr<distant_files> far_away() {
  auto files = std::make_shared<distant_files>();
  for (std::uint64_t n = 0; n < object_count; ++n) files->add(name_of(n), 1 + n * 7'919'013 % 90'000);
  return files;
}

std::unique_ptr<mr::detail::cached_storage> cache_in(const std::string& folder,
                                                     const std::shared_ptr<distant_files>& below) {
  const mr::cache_options o{.folder = folder, .bytes = limit_bytes, .keep_free_share = 0,
                            .notice = [](const mr::notice& n) {
                              if (n.text.find("within its limits") == std::string::npos) std::abort();
                            }};
  return std::make_unique<mr::detail::cached_storage>(below, o, layout);
}

bool reads_right(mr::storage_interface& cache, distant_files& below, std::uint64_t n) {
  const std::string name = name_of(n);
  return read_complete(cache, name, 10'000) == below.files.at(name).text;
}

/// Two caches in one folder, like two processes that are killed at the same time.
void write_cache(const records& range) {
  const auto below = far_away();
  const auto one = cache_in(range.folder, below), two = cache_in(range.folder, below);
  std::atomic<bool> over{false}, other_right{true};
  std::thread other([&] {
    for (std::uint64_t n = range.first; !over && other_right; ++n)
      other_right = reads_right(*two, *below, n * 7 / 3);
  });
  bool right = true;
  for (std::uint64_t n = range.first; right && n < range.first + range.count; ++n) {
    right = reads_right(*one, *below, n);
    if (right) acknowledge(n);
  }
  over = true;
  other.join();
  if (!right || !other_right) wrong("a file has other bytes");
}

std::uint64_t cached_bytes(const std::string& folder, bool parts_too) {
  std::uint64_t sum = 0;
  for (const auto& entry : mr::detail::list_cache(mr::detail::cache_root(folder))) {
    sum += entry.bytes;
    if (entry.name.is_part && !parts_too) wrong(entry.path + " is left");
  }
  return sum;
}

std::uint64_t check_cache(const std::string& folder, std::uint64_t acknowledged) {
  if (cached_bytes(folder, true) > limit_bytes) wrong("a kill leaves more than the limit");
  const auto below = far_away();
  const auto cache = cache_in(folder, below);
  const std::uint64_t bytes = cached_bytes(folder, false);
  if (bytes > limit_bytes) wrong("a start leaves more than the limit");
  if (bytes == 0 && acknowledged > 0) wrong("a kill leaves nothing");
  for (std::uint64_t n = 0; n < object_count; ++n)
    if (!reads_right(*cache, *below, n)) wrong(name_of(n) + " has other bytes");
  if (cache->statistics().damaged_blocks > 0) wrong("a kill leaves a damaged block");
  if (cached_bytes(folder, false) > limit_bytes) wrong("reading leaves more than the limit");
  return acknowledged;
}

}  // namespace

std::span<const kind> cache_kinds() {
  static constexpr kind all[] = {{"cache", 40, write_cache, check_cache, true}};
  return all;
}
