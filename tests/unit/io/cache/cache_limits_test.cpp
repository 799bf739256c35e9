// A cache stays within its limits, and the run continues without it when its folder fails.
#include "../../../eventually.hpp"
#include "distant_files.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace mr = millrace;

namespace {

void set_time(const std::string& path, long seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

}  // namespace

TEST_CASE("a replaced object is another one, and its old blocks are evicted first") {
  cached_place p;
  p.options.bytes = 5 * cached_place::block_on_disk;
  p.below->add("far://a", 8'000, "1");
  p.below->add("far://b", 7'999);
  CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  const std::string old = p.text("far://a");
  p.below->add("far://a", 8'000, "2");
  const auto cache = p.cache();
  CHECK(read_complete(*cache, "far://a") == p.text("far://a"));
  p.below->files["far://a"] = {.text = old, .version = "1"};
  CHECK(read_complete(*cache, "far://a") == old);
  CHECK(cache->statistics().evictions == 0);
  CHECK(p.below->read_bytes == 16'000);
  std::set<std::uint64_t> versions;
  for (const auto& e : p.entries()) versions.insert(e.name.version);
  REQUIRE(versions.size() == 2);
  const std::uint64_t outdated = *versions.begin();
  for (const auto& e : p.entries())   // one block of the other version is the very oldest
    set_time(e.path, e.name.version == outdated ? 1'000'000 : e.name.number == 0 ? 10 : 2'000'000);
  CHECK(read_complete(*cache, "far://b") == p.text("far://b"));
  std::size_t outdated_left = 0;
  for (const auto& e : p.entries()) outdated_left += e.name.version == outdated;
  CHECK(outdated_left == 1);
  CHECK(cache->statistics().evictions == 1);
  CHECK(p.cached_bytes() <= p.options.bytes);
}

TEST_CASE("the least recently used blocks are replaced; open ones stay, also those that others have open") {
  cached_place p;
  p.options.bytes = 4 * cached_place::block_on_disk;
  for (const char* name : {"far://a", "far://b", "far://c", "far://d", "far://e", "far://f"}) p.below->add(name, 4'000);
  const auto cache = p.cache(), other = p.cache();
  const auto is_kept = [&](const char* name) { return !p.path_of(name).empty(); };
  long seconds = 1'000;
  for (const char* name : {"far://c", "far://a", "far://d", "far://b"}) {
    CHECK(read_complete(*cache, name) == p.text(name));
    set_time(p.path_of(name), ++seconds);
  }
  CHECK(cache->statistics().evictions == 0);
  CHECK(p.cached_bytes() == 4 * cached_place::block_on_disk);
  CHECK(read_complete(*cache, "far://c") == p.text("far://c"));   // used again: now a is the oldest
  CHECK(read_complete(*cache, "far://e") == p.text("far://e"));
  CHECK(!is_kept("far://a"));
  CHECK((is_kept("far://c") && is_kept("far://d") && is_kept("far://b") && is_kept("far://e")));
  CHECK(cache->statistics().evictions == 1);
  CHECK(cache->statistics().evicted_bytes == cached_place::block_on_disk);

  const auto oldest = other->open("far://d");   // the oldest now
  std::string buffer(10, '\0');
  CHECK(oldest->read_at(0, std::as_writable_bytes(std::span(buffer))) == 10);
  set_time(p.path_of("far://d"), 10);
  CHECK(read_complete(*cache, "far://f") == p.text("far://f"));
  CHECK((is_kept("far://d") && !is_kept("far://b")));
  CHECK(p.cached_bytes() <= p.options.bytes);

  // All are open: the next one is read without the cache, and reported once.
  std::vector<std::unique_ptr<mr::stored_file>> all;
  for (const char* name : {"far://c", "far://d", "far://e", "far://f"}) {
    all.push_back(other->open(name));
    CHECK(all.back()->read_at(0, std::as_writable_bytes(std::span(buffer))) == 10);
  }
  CHECK(p.notices.empty());
  CHECK(read_complete(*cache, "far://a") == p.text("far://a"));
  CHECK(read_complete(*cache, "far://b") == p.text("far://b"));
  CHECK(p.block_paths().size() == 4);
  CHECK(cache->statistics().uncached_bytes == 8'000);
  REQUIRE(p.notices.size() == 1);
  CHECK(p.notices[0].find("within its limits") != std::string::npos);
}

TEST_CASE("parts of dead processes are removed; one that is being written is waited for, up to a limit") {
  cached_place p;
  p.below->add("far://a", 4'000);
  p.options.bytes = 2 * cached_place::block_on_disk;
  CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  REQUIRE(p.block_paths().size() == 1);
  const std::string path = p.block_paths()[0], part = path + ".part";
  std::filesystem::remove(path);
  const auto write_part = [&] { std::ofstream(part) << std::string(100'000, 'x'); };
  write_part();
  const auto cache = p.cache();
  CHECK(p.block_paths().empty());   // at the start
  write_part();
  CHECK(read_complete(*cache, "far://a") == p.text("far://a"));   // by the thread that needs it
  CHECK(p.block_paths() == std::vector<std::string>{path});

  std::filesystem::remove(path);
  write_part();
  const int live = ::open(part.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(live, LOCK_EX) == 0);
  p.options.wait_limit = std::chrono::milliseconds(50);
  const auto hasty = p.cache();
  CHECK(p.block_paths() == std::vector<std::string>{part});
  CHECK(read_complete(*hasty, "far://a") == p.text("far://a"));
  CHECK(hasty->statistics().waits == 1);
  CHECK(hasty->statistics().waits_given_up == 1);
  CHECK(hasty->statistics().uncached_bytes == 4'000);
  std::thread writer([&] {
    sleep_ms(100);
    ::close(live);
  });
  p.options.wait_limit = std::chrono::minutes(1);
  const auto patient = p.cache();
  CHECK(read_complete(*patient, "far://a") == p.text("far://a"));
  writer.join();
  CHECK(patient->statistics().waits == 1);
  CHECK(patient->statistics().misses == 1);
  CHECK(p.block_paths() == std::vector<std::string>{path});
}

TEST_CASE("other files in the folder are neither counted nor removed") {
  cached_place p;
  p.options.bytes = 2 * cached_place::block_on_disk;
  p.below->add("far://a", 20'000);
  std::ofstream(p.folder / "notes.txt") << std::string(50'000, 'n');
  CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  const std::string bucket = std::filesystem::path(p.block_paths().at(0)).parent_path().string();
  std::ofstream(bucket + "/mine.part") << "mine";
  std::ofstream(bucket + "/0123456789abcdef-0123456789abcdef-0000000g") << "mine";
  for (int i = 0; i < 3; ++i) CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  CHECK(p.cached_bytes() <= p.options.bytes);
  CHECK(std::filesystem::exists(bucket + "/mine.part"));
  CHECK(std::filesystem::exists(bucket + "/0123456789abcdef-0123456789abcdef-0000000g"));
  CHECK(std::filesystem::file_size(p.folder / "notes.txt") == 50'000);
  const auto status = std::filesystem::status(mr::detail::cache_root(p.folder.path()));
  CHECK(status.permissions() == std::filesystem::perms::owner_all);
}

TEST_CASE("a disk that accepts no data is reported once, and the run continues without it") {
  cached_place p;
  p.below->add("far://a", 60'000);
  struct ::rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  ::rlimit little = before;
  little.rlim_cur = 6'000;   // the ledger fits, a block does not
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &little);
  const auto cache = p.cache();
  const std::string read = read_complete(*cache, "far://a");
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  CHECK(read == p.text("far://a"));
  CHECK(cache->statistics().uncached_bytes == 60'000);
  CHECK(cache->statistics().refusals > 0);
  CHECK(p.cached_bytes() == 0);
  REQUIRE(p.notices.size() == 1);
  CHECK(p.notices[0].find("continues without the cache") != std::string::npos);
  CHECK(p.notices[0].find("File too large") != std::string::npos);
  CHECK(eventually([&] {   // it is retried a second later
    CHECK(read_complete(*cache, "far://a") == p.text("far://a"));
    return !p.block_paths().empty();
  }));
}

TEST_CASE("a share of the file system that stays free limits the cache") {
  cached_place p;
  p.options.keep_free_share = 1;   // the disk never has that much free space
  p.below->add("far://a", 9'000);
  const auto cache = p.cache();
  CHECK(read_complete(*cache, "far://a") == p.text("far://a"));
  CHECK(p.cached_bytes() == 0);
  CHECK(cache->statistics().uncached_bytes == 9'000);
  CHECK(p.notices.size() == 1);
}

TEST_CASE("each block that several threads need is fetched once") {
  cached_place p;
  p.below->delay_ms = 2;
  p.below->add("far://a", 60'000);
  p.below->add("far://b", 30'000);
  const auto cache = p.cache(), other = p.cache();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (const char* name : {"far://a", "far://b"})
        wrong += read_complete(i % 2 == 0 ? *cache : *other, name, 3'000) != p.text(name);
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(p.below->read_bytes == 90'000);
  CHECK(cache->statistics().waits + other->statistics().waits > 0);
  CHECK(p.notices.empty());
}

TEST_CASE("threads under a limit that is far too small") {
  cached_place p;
  p.options.bytes = 5 * cached_place::block_on_disk;
  for (int i = 0; i < 6; ++i) p.below->add("far://" + std::to_string(i), 20'000);
  const auto cache = p.cache(), other = p.cache();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  std::atomic<bool> over{false};
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 12; ++k) {
        const std::string name = "far://" + std::to_string((i + k) % 6);
        wrong += read_complete(i % 2 == 0 ? *cache : *other, name, 3'000) != p.text(name);
        if (p.cached_bytes() > *p.options.bytes + cached_place::block_on_disk) over = true;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(p.cached_bytes() <= p.options.bytes);
  CHECK(cache->statistics().evictions + other->statistics().evictions > 0);
}

// A full disk does not stop a run: the cache evicts its own blocks, then the run continues without the cache.
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
