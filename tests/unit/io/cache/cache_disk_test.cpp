// A full disk does not stop a run: the cache evicts its own blocks, then the run continues without the cache.
#include "cached_place.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mr = millrace;

namespace {

/// Calls `act` in a child whose folder is a separate disk of 64 MB. Returns its text, or "skipped" if mounting is not
/// allowed.
std::string on_small_disk(const std::string& folder, const char* options, const auto& act) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text = "skipped";
    if (::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options) == 0) {
      try {
        text = act();
      } catch (const std::exception& e) {
        text = e.what();
      }
    }
    ::_exit(::write(pipe_ends[1], text.data(), text.size()) >= 0 ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  std::string text(2'000, '\0');
  const ssize_t got = ::read(pipe_ends[0], text.data(), text.size());
  ::close(pipe_ends[0]);
  ::waitpid(child, nullptr, 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

TEST_CASE("a disk of 64 MB is filled with blocks of 8 MiB, which replace each other") {
  cached_place p;
  for (int i = 0; i < 10; ++i) p.below->add("far://" + std::to_string(i), 9'000'000);
  const std::string report = on_small_disk(p.folder.path(), "size=64m", [&]() -> std::string {
    const auto cache = std::make_unique<mr::detail::cached_storage>(p.below, p.options);
    const auto read_all = [&] {
      for (const auto& [name, file] : p.below->files)
        if (read_complete(*cache, name, 1'000'000) != file.text) return false;
      return true;
    };
    if (!read_all()) return "wrong bytes";
    if (!p.notices.empty()) return p.notices[0];
    if (cache->statistics().evictions == 0 || p.cached_bytes() < 50'000'000) return "it is not full";
    const std::uint64_t passed = cache->statistics().uncached_bytes;
    if (passed != 0) return "passed without a need";

    // Another program fills the rest of the disk, and a part of the cache's.
    const std::string big = p.folder / "big";
    std::filesystem::remove_all(cache->root() + "/00");
    for (const std::string& path : p.block_paths()) std::filesystem::remove(path);
    std::ofstream(big) << std::string(62'000'000, 'x');
    if (!read_all()) return "wrong bytes on a full disk";
    if (p.notices.size() != 1) return "warned " + std::to_string(p.notices.size()) + " times";
    if (p.notices[0].find("No space left") == std::string::npos) return p.notices[0];
    if (cache->statistics().uncached_bytes == passed) return "nothing passed";
    std::filesystem::remove(big);
    sleep_ms(1'100);
    if (!read_all()) return "wrong bytes after it";
    if (p.cached_bytes() < 50'000'000) return "it does not continue";
    return p.notices.size() == 1 ? "well" : p.notices[1];
  });
  if (report == "skipped") MESSAGE("no right to mount");
  else CHECK(report == "well");
}

TEST_CASE("a disk without a free inode") {
  cached_place p;
  for (int i = 0; i < 30; ++i) p.below->add("far://" + std::to_string(i), 9'000);
  const std::string report = on_small_disk(p.folder.path(), "size=64m,nr_inodes=24", [&]() -> std::string {
    const auto cache = p.cache();
    for (const auto& [name, file] : p.below->files)
      if (read_complete(*cache, name) != file.text) return "wrong bytes";
    if (p.notices.size() != 1) return "warned " + std::to_string(p.notices.size()) + " times";
    return cache->statistics().uncached_bytes > 0 && cache->statistics().misses > 0 ? "well" : "not full";
  });
  if (report == "skipped") MESSAGE("no right to mount");
  else CHECK(report == "well");
}
