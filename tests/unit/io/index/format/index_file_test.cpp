// Index files: round trips, every kind of damage, staleness, and many writers at once.
#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>
#include <millrace/io/index/format/index_file.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mr = millrace;
using namespace tar_test;
using enum mr::detail::index_file_state;

namespace {

/// A shard on disk and its index in memory.
struct shard_on_disk {
  temporary_folder folder;
  std::string path, tar;
  mr::detail::shard_identity identity;
  mr::detail::shard_index index;

  explicit shard_on_disk(std::string bytes = small_shard().bytes()) : path(folder / "s.tar"), tar(std::move(bytes)) {
    save(path, tar);
    identity = mr::detail::identify_shard(path);
    index = fresh();
  }
  mr::detail::shard_index fresh() const {
    mr::file_source source(path);
    mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
    index.identify(identity);
    return index;
  }
  std::string index_name() const { return mr::detail::index_path(path); }
};

bool same(const mr::detail::shard_index& a, const mr::detail::shard_index& b) {
  const auto bytes_of = [](const mr::detail::shard_index& i) { return mr::detail::index_bytes(i); };
  return bytes_of(a) == bytes_of(b);
}

std::string text_of(const mr::detail::shard_index& index) {
  const auto bytes = mr::detail::index_bytes(index);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Overwrites a file of the same size, which is faster than creating another one.
void overwrite(const std::string& path, std::string_view data) {
  std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
  out.write(data.data(), static_cast<std::streamsize>(data.size()));
}

/// Writes matching checksums of head and columns, whatever these contain.
void make_checksums_right(std::string& file) {
  mr::detail::index_head head;
  std::memcpy(static_cast<void*>(&head), file.data(), sizeof head);
  head.body_checksum = mr::crc32c(std::as_bytes(std::span(file)).subspan(sizeof head));
  head.head_checksum = head.expected_head_checksum();
  std::memcpy(file.data(), &head, sizeof head);
}

}  // namespace

TEST_CASE("an index that is read from its file equals the written one") {
  const std::string damaged = small_shard().bytes().substr(0, 4000);
  for (const std::string& tar : {small_shard().bytes(), small_shard(pax_file).bytes(), damaged,
                                 file("README", "1") + end_marker(), end_marker()}) {
    shard_on_disk s(tar);
    if (s.index.members() > 1) s.index.learn_checksum(1, 77);
    CHECK(mr::detail::load_index(s.index_name(), s.identity).state == missing);
    CHECK(mr::detail::store_index(s.index_name(), s.index).written);
    CHECK_FALSE(mr::detail::store_index(s.index_name(), s.index).written);   // all of it is loaded
    const auto loaded = mr::detail::load_index(s.index_name(), s.identity);
    CAPTURE(loaded.reason);
    REQUIRE(loaded.state == good);
    CHECK(same(loaded.index, s.index));
    CHECK(loaded.index.state() == s.index.state());
    CHECK(loaded.index.damage() == s.index.damage());
    const auto summary = mr::detail::summarize_index(s.index_name(), s.identity);
    CHECK(summary.state == good);
    CHECK(summary.samples == s.index.samples());
    CHECK(summary.fingerprint == s.index.fingerprint());
    CHECK(summary.known_checksums == (s.index.members() > 1 ? 1 : 0));
    CHECK(summary.shard_is_complete == (tar != damaged));
    CHECK(s.folder.file_count() == 2);
  }
}

TEST_CASE("every cut and every flipped bit of an index file is detected") {
  shard_on_disk s;
  CHECK(s.index.learn_checksum(2, 0x12345678) == 0x12345678);
  CHECK(s.index.learn_checksum(2, 5) == 0x12345678);   // the known one stays
  const std::string text = text_of(s.index);
  std::size_t refused = 0;
  for (std::size_t length = 0; length < text.size(); ++length) {
    save(s.index_name(), std::string_view(text).substr(0, length));
    refused += mr::detail::load_index(s.index_name(), s.identity).state == (length == 0 ? missing : damaged);
  }
  CHECK(refused == text.size());
  refused = 0;
  save(s.index_name(), text);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    overwrite(s.index_name(), flipped);
    const auto loaded = mr::detail::load_index(s.index_name(), s.identity);
    refused += loaded.state != good && !loaded.reason.empty() && loaded.index.samples() == 0;
  }
  CHECK(refused == text.size() * 8);
  for (const std::string& more : {std::string("x"), std::string(4, '\0'), text}) {
    save(s.index_name(), text + more);
    CHECK(mr::detail::load_index(s.index_name(), s.identity).state == damaged);
  }
  save(s.index_name(), text);
  CHECK(mr::detail::load_index(s.index_name(), s.identity).state == good);
}

TEST_CASE("an index that an attacker wrote, checksums and all, leads to no byte outside of it or of its shard") {
  shard_on_disk s;
  const std::string text = text_of(s.index);
  mr::rng random({.seed = 4});
  std::size_t accepted = 0, refused = 0;
  save(s.index_name(), text);
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = text;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      const std::size_t at = 24 + random.below((bad.size() - 24) / 4) * 4;   // mark, version and size of the shard stay
      const std::uint32_t values[] = {0, 1, 2, 7, 14, 0x7fffffff, 0xfffffffe, 0xffffffff,
                                      static_cast<std::uint32_t>(random.below(100))};
      std::memcpy(bad.data() + at, &values[random.below(9)], 4);
    }
    make_checksums_right(bad);
    overwrite(s.index_name(), bad);
    mr::detail::index_head head;
    std::memcpy(static_cast<void*>(&head), bad.data(), sizeof head);
    auto loaded = mr::detail::load_index(s.index_name(), head.identity());
    if (loaded.state != good) {
      ++refused;
      continue;
    }
    ++accepted;
    memory_source source(s.tar);
    mr::detail::indexed_reader reader(source, loaded.index, shared_pool());
    std::vector<std::uint32_t> numbers(loaded.index.samples());
    for (std::uint32_t n = 0; n < numbers.size(); ++n) numbers[n] = n;
    std::vector<mr::record> records(numbers.size());
    const std::size_t good_ones = reader.read(numbers, records);
    for (std::size_t n = 0; n < good_ones; ++n) CHECK(fields_text(records[n]).size() < 5'000);
    if (loaded.index.state() == mr::detail::shard_index::shard_state::damaged) {
      CHECK_THROWS_AS(reader.throw_damage(), mr::data_error);
    }
  }
  CHECK(accepted > 1'000);
  CHECK(refused > 1'000);
}

TEST_CASE("every invalid number is refused, whatever the checksums say") {
  shard_on_disk s;   // 3 samples, 6 members, 2 fields
  const std::string text = text_of(s.index);
  const std::size_t columns = sizeof(mr::detail::index_head);
  const auto blocks = static_cast<std::uint32_t>(s.tar.size() / 512);
  struct change {
    const char* what;
    std::size_t word;
    std::uint32_t value;
    bool sound;
  };
  for (const change& c : {change{"nothing", 0, 0, true}, {"a sample twice", 1, 0, false},
                          {"the last sample in the last block", 2, blocks - 1, true},
                          {"a sample after the shard", 2, blocks, false},
                          {"a key that ends before it begins", 4, 0, false},
                          {"a key after the keys", 5, 4, false}, {"a sample without members", 6, 0, false},
                          {"a member after the members", 8, 7, false}, {"too few members", 8, 5, false},
                          {"a payload up to the last byte", 14, blocks - 2, true},
                          {"a payload after the shard", 14, blocks - 1, false},
                          {"a payload in pieces", 14, 0xffffffff, true}, {"a payload far away", 9, 0x7fffffff, false},
                          {"a payload that is too long", 20, 100'000, false}, {"a field that is none", 21, 2, false},
                          {"a name that ends before it begins", 33, 7, false}, {"a name that is cut", 34, 5, false}}) {
    CAPTURE(c.what);
    std::string bad = text;
    std::memcpy(bad.data() + columns + 4 * c.word, &c.value, 4);
    make_checksums_right(bad);
    save(s.index_name(), bad);
    const auto loaded = mr::detail::load_index(s.index_name(), s.identity);
    CAPTURE(loaded.reason);
    CHECK(loaded.state == (c.sound ? good : damaged));
  }
}

TEST_CASE("an index is valid for one size and one time of its shard, and for one version") {
  shard_on_disk s;
  mr::detail::store_index(s.index_name(), s.index);
  mr::detail::shard_identity other = s.identity;
  ++other.size_bytes;
  CHECK(mr::detail::load_index(s.index_name(), other).state == stale);
  other = s.identity;
  ++other.modified_ns;
  CHECK(mr::detail::load_index(s.index_name(), other).state == touched);
  CHECK(mr::detail::load_index(s.index_name(), other).index.fingerprint() == s.index.fingerprint());
  CHECK(mr::detail::summarize_index(s.index_name(), other).state == touched);
  std::string newer = load(s.index_name());
  newer[12] = 3;   // the version
  make_checksums_right(newer);
  save(s.index_name(), newer);
  CHECK(mr::detail::load_index(s.index_name(), s.identity).state == stale);
  CHECK(mr::detail::store_index(s.index_name(), s.index).written);
  CHECK(mr::detail::load_index(s.index_name(), s.identity).state == good);
  // store_index() does not copy the checksums of another state of the shard; the builder of an index does.
  mr::detail::shard_index changed = s.fresh();
  ++other.modified_ns;
  changed.identify(other);
  s.index.learn_checksum(0, 5);
  mr::detail::store_index(s.index_name(), s.index);
  CHECK(mr::detail::store_index(s.index_name(), changed).learned_checksums == 0);
  CHECK(changed.known_checksums() == 0);
  CHECK(mr::detail::load_index(s.index_name(), s.identity).state == touched);
}

TEST_CASE("shards of one name in two folders have two indexes in a cache folder") {
  const temporary_folder f;
  std::filesystem::create_directories(f / "a");
  std::filesystem::create_directories(f / "b");
  save(f / "a/s.tar", small_shard().bytes());
  save(f / "b/s.tar", small_shard().bytes());
  const mr::detail::index_file_options options{.cache_folder = f / "cache"};
  const std::string a = mr::detail::index_path(f / "a/s.tar", options),
    b = mr::detail::index_path(f / "b/s.tar", options);
  CHECK(a != b);
  CHECK(a.starts_with(f / "cache/s.tar-"));
  CHECK(a.ends_with(".millrace-index"));
  CHECK(mr::detail::index_path(f / "a/../a/s.tar", options) == a);
  CHECK(mr::detail::index_path("x/y.tar") == "x/y.tar.millrace-index");
  CHECK(mr::detail::index_path(std::string(250, 'n'), options).size() < a.size() + 200);
}

TEST_CASE("checksums of two writers are merged, and of two that differ the older one stays") {
  shard_on_disk s;
  mr::detail::shard_index one = s.fresh(), two = s.fresh();
  one.learn_checksum(0, 10);
  one.learn_checksum(1, 11);
  two.learn_checksum(1, 99);
  two.learn_checksum(2, 12);
  CHECK(mr::detail::store_index(s.index_name(), one).written);
  const auto result = mr::detail::store_index(s.index_name(), two);
  CHECK(result.written);
  CHECK(result.learned_checksums == 1);
  CHECK(result.conflicting_checksums == 1);
  const auto merged = mr::detail::load_index(s.index_name(), s.identity);
  REQUIRE(merged.state == good);
  CHECK(merged.index.checksum(0) == 10);
  CHECK(merged.index.checksum(1) == 11);
  CHECK(merged.index.checksum(2) == 12);
  CHECK(same(merged.index, two));
  CHECK_FALSE(mr::detail::store_index(s.index_name(), one).written);
  CHECK(same(merged.index, one));
}

TEST_CASE("eight processes that fill one index at once lose no checksum") {
  constexpr std::uint32_t processes = 8, per_process = 60;
  std::string tar;
  for (std::uint32_t i = 0; i < processes * per_process; ++i) tar += file("k" + std::to_string(i) + ".txt", "x");
  shard_on_disk s(tar + end_marker());
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove(s.index_name());
    std::vector<pid_t> children;
    for (std::uint32_t p = 0; p < processes; ++p) {
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        int result = 0;
        try {
          mr::detail::shard_index own = s.fresh();
          for (std::uint32_t i = 0; i < per_process; ++i) {
            own.learn_checksum(i * processes + p, 1000 + i * processes + p);
            if (i % 4 == p % 4) mr::detail::store_index(s.index_name(), own);
          }
          mr::detail::store_index(s.index_name(), own);
        } catch (...) {
          result = 1;
        }
        ::_exit(result);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK(status == 0);
    }
    const auto merged = mr::detail::load_index(s.index_name(), s.identity);
    REQUIRE(merged.state == good);
    for (std::uint32_t m = 0; m < processes * per_process; ++m)
      if (merged.index.checksum(m) != 1000 + m) FAIL("the checksum of member " << m << " is lost");
    CHECK(s.folder.file_count() == 2);
  }
}

TEST_CASE("a process that is killed while it writes leaves a valid index or none") {
  std::string tar;
  for (std::uint32_t i = 0; i < 2'000; ++i) tar += file("k" + std::to_string(i) + ".txt", "x");
  shard_on_disk s(tar + end_marker());
  mr::rng random({.seed = 8});
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      mr::detail::shard_index own = s.fresh();
      for (std::uint32_t i = 0;; i = (i + 1) % 2'000) {
        own.set_checksum(i, 1 + i + own.checksum(i));
        std::filesystem::remove(s.index_name());
        mr::detail::store_index(s.index_name(), own);
      }
    }
    ::usleep(static_cast<useconds_t>(2'000 + random.below(8'000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const auto left = mr::detail::load_index(s.index_name(), s.identity);
    CAPTURE(left.reason);
    CHECK((left.state == good || left.state == missing));
    CHECK((mr::detail::store_index(s.index_name(), s.index).written || left.state == good));
    std::filesystem::remove(s.index_name());
  }
}

TEST_CASE("threads may learn checksums while the index is written") {
  std::string tar;
  for (std::uint32_t i = 0; i < 3'000; ++i) tar += file("k" + std::to_string(i) + ".txt", "x");
  shard_on_disk s(tar + end_marker());
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&s, t] {
      for (std::uint32_t m = t; m < 3'000; m += 3) s.index.learn_checksum(m, m + 1);
    });
  for (int i = 0; i < 5; ++i) mr::detail::store_index(s.index_name(), s.index);
  for (auto& t : threads) t.join();
  mr::detail::store_index(s.index_name(), s.index);
  const auto loaded = mr::detail::load_index(s.index_name(), s.identity);
  REQUIRE(loaded.state == good);
  CHECK(loaded.index.known_checksums() == 3'000);
  CHECK(same(loaded.index, s.index));
}

TEST_CASE("a folder is not an index, and a folder that cannot be written to is an io_error") {
  shard_on_disk s;
  REQUIRE(::mkfifo(s.index_name().c_str(), 0600) == 0);
  CHECK(mr::detail::load_index(s.index_name(), s.identity).state == damaged);
  std::filesystem::remove(s.index_name());
  std::filesystem::create_directory(s.index_name());
  CHECK(mr::detail::load_index(s.index_name(), s.identity).state == damaged);
  CHECK_THROWS_AS(mr::detail::store_index(s.index_name(), s.index), mr::io_error);
  CHECK_THROWS_AS(mr::detail::store_index(s.folder / "none/x", s.index), mr::io_error);
  CHECK_THROWS_AS((void)mr::detail::identify_shard(s.folder / "none"), mr::io_error);
}
