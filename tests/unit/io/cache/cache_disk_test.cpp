// A disk that is full is no reason to stop: the cache makes room as long as the room is its own, then goes on without.
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

/// Calls `act` in a child whose folder is a disk of 64 MB of its own. Returns what it says, "skipped" where that is not
/// allowed.
std::string on_small_disk(const std::string& folder, const char* options, const auto& act) {
  int said[2];
  if (::pipe(said) != 0) return "no pipe";
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
    ::_exit(::write(said[1], text.data(), text.size()) >= 0 ? 0 : 1);
  }
  ::close(said[1]);
  std::string text(2'000, '\0');
  const ssize_t got = ::read(said[0], text.data(), text.size());
  ::close(said[0]);
  ::waitpid(child, nullptr, 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

TEST_CASE("a disk of 64 MB is filled with blocks of 8 MiB, which make room for each other") {
  cached_place p;
  for (int i = 0; i < 10; ++i) p.below->add("far://" + std::to_string(i), 9'000'000);
  const std::string said = on_small_disk(p.folder.path(), "size=64m", [&]() -> std::string {
    const auto cache = std::make_unique<mr::detail::cached_storage>(p.below, p.options);
    const auto read_all = [&] {
      for (const auto& [name, file] : p.below->files)
        if (read_whole(*cache, name, 1'000'000) != file.text) return false;
      return true;
    };
    if (!read_all()) return "wrong bytes";
    if (!p.told.empty()) return p.told[0];
    if (cache->figures().evictions == 0 || p.kept_bytes() < 50'000'000) return "it is not full";
    const std::uint64_t passed = cache->figures().passed_bytes;
    if (passed != 0) return "passed without a need";

    // Somebody else takes the rest of the disk, and a part of the cache's.
    const std::string big = p.folder / "big";
    std::filesystem::remove_all(cache->root() + "/00");
    for (const std::string& path : p.kept()) std::filesystem::remove(path);
    std::ofstream(big) << std::string(62'000'000, 'x');
    if (!read_all()) return "wrong bytes on a full disk";
    if (p.told.size() != 1) return "told " + std::to_string(p.told.size()) + " times";
    if (p.told[0].find("No space left") == std::string::npos) return p.told[0];
    if (cache->figures().passed_bytes == passed) return "nothing passed";
    std::filesystem::remove(big);
    sleep_ms(1'100);
    if (!read_all()) return "wrong bytes behind it";
    if (p.kept_bytes() < 50'000'000) return "it does not go on";
    return p.told.size() == 1 ? "well" : p.told[1];
  });
  if (said == "skipped") MESSAGE("no right to mount");
  else CHECK(said == "well");
}

TEST_CASE("a disk without a free inode") {
  cached_place p;
  for (int i = 0; i < 30; ++i) p.below->add("far://" + std::to_string(i), 9'000);
  const std::string said = on_small_disk(p.folder.path(), "size=64m,nr_inodes=24", [&]() -> std::string {
    const auto cache = p.cache();
    for (const auto& [name, file] : p.below->files)
      if (read_whole(*cache, name) != file.text) return "wrong bytes";
    if (p.told.size() != 1) return "told " + std::to_string(p.told.size()) + " times";
    return cache->figures().passed_bytes > 0 && cache->figures().misses > 0 ? "well" : "not full";
  });
  if (said == "skipped") MESSAGE("no right to mount");
  else CHECK(said == "well");
}
