// A cache returns the bytes of the storage below, whatever is in its folder.
#include "../../../captured_stderr.hpp"
#include "../../../thorough.hpp"
#include "distant_files.hpp"

#include <millrace/io/cache/cache_contents.hpp>
#include <millrace/io/cache/cached.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

namespace mr = millrace;

namespace {

void flip(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char was = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(was ^ 0x10));
}

std::string failure_of(const auto& act) {
  try {
    act();
  } catch (const mr::error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("reads through a cache return the bytes of the storage, and the second run reads none from it") {
  for (const std::size_t bytes : {1U, 511U, 512U, 513U, 4095U, 4096U, 4097U, 20'000U})
    for (const std::size_t step : {1U, 100U, 512U, 1'000U, 4'096U, 30'000U}) {
      CAPTURE(bytes);
      CAPTURE(step);
      cached_place p;
      p.below->add("far://a", bytes);
      const auto first = p.cache();
      CHECK(read_complete(*first, "far://a", step) == p.text("far://a"));
      CHECK(p.below->read_bytes == bytes);
      CHECK(first->statistics().share() == 0);
      CHECK(first->statistics().misses == (bytes + 4095) / 4096);
      CHECK(first->statistics().hits == 0);
      CHECK(first->statistics().delivered_bytes == bytes);
      const auto second = p.cache();
      CHECK(read_complete(*second, "far://a", step) == p.text("far://a"));
      CHECK(p.below->read_bytes == bytes);
      CHECK(p.below->opened == 1);
      CHECK(second->statistics().share() == 1);
      CHECK(second->statistics().hits == (bytes + 4095) / 4096);
      CHECK(p.notices.empty());
    }
}

TEST_CASE("random reads, short reads below and empty files") {
  cached_place p;
  p.below->add("far://a", 50'000);
  p.below->add("far://empty", 0);
  p.below->max_read = 700;
  const auto cache = p.cache();
  CHECK(read_complete(*cache, "far://empty").empty());
  CHECK(cache->open("far://none") == nullptr);
  CHECK(cache->find("far://a")->size_bytes == 50'000);
  CHECK(cache->list("far://") == std::vector<std::string>{"far://a", "far://empty"});
  const auto file = cache->open("far://a");
  CHECK(file->identity() == mr::file_identity{50'000, "1"});
  CHECK(file->name() == "far://a");
  std::uint64_t state = 7;
  std::string buffer;
  for (int i = 0; i < 2'000; ++i) {
    const std::uint64_t at = mr::detail::mix_bits(++state) % 50'010;
    buffer.resize(mr::detail::mix_bits(++state) % 9'000);
    const std::size_t got = file->read_at(at, std::as_writable_bytes(std::span(buffer)));
    if (at >= 50'000 || buffer.empty()) CHECK(got == 0);
    else REQUIRE(got > 0);
    REQUIRE(buffer.compare(0, got, p.text("far://a"), at > 50'000 ? 50'000 : at, got) == 0);
  }
  CHECK(p.below->read_bytes == 50'000);
}

TEST_CASE("a file that is replaced between open and its first read is an error; so is a removed one") {
  cached_place p;
  p.below->add("far://a", 8'000);
  const auto cache = p.cache();
  auto file = cache->open("far://a");
  p.below->add("far://a", 8'000, "2");
  std::string buffer(100, '\0');
  const auto read = [&] { file->read_at(0, std::as_writable_bytes(std::span(buffer))); };
  CHECK(failure_of(read).find("the file was replaced since it was opened") != std::string::npos);
  p.below->files.clear();
  CHECK(failure_of(read).find("the file was removed since it was opened") != std::string::npos);
  file.reset();
  CHECK(p.block_paths().empty());
}

TEST_CASE("files without a version are read, not cached, and reported once") {
  cached_place p;
  p.below->add("far://a", 5'000, "");
  p.below->add("far://b", 5'000, "");
  const auto cache = p.cache();
  for (int i = 0; i < 2; ++i)
    for (const char* name : {"far://a", "far://b"}) CHECK(read_complete(*cache, name) == p.text(name));
  CHECK(cache->statistics().files_without_version == 4);
  CHECK(p.block_paths().empty());
  REQUIRE(p.notices.size() == 1);
  CHECK(p.notices[0].find("files without a version are not cached") != std::string::npos);
  CHECK(p.notices[0].find("far://a") != std::string::npos);
}

TEST_CASE("every flipped byte of every block is detected, and the block is fetched again") {
  cached_place p;
  p.below->add("far://a", 5'000);
  CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  REQUIRE(p.block_paths().size() == 2);
  for (const std::string& path : p.block_paths()) {
    const std::uint64_t size = std::filesystem::file_size(path);
    for (std::uint64_t at = 0; at < size; at += stride(7)) {
      flip(path, at);
      const auto cache = p.cache();
      REQUIRE(read_complete(*cache, "far://a", 5'000) == p.text("far://a"));
      REQUIRE(cache->statistics().damaged_blocks == 1);
      REQUIRE(cache->statistics().misses == 1);
    }
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{50}, std::uint64_t{4'096}, size - 1, size + 1}) {
      std::filesystem::resize_file(path, bytes);
      const auto cache = p.cache();
      REQUIRE(read_complete(*cache, "far://a") == p.text("far://a"));
      REQUIRE(cache->statistics().damaged_blocks == 1);
    }
  }
  CHECK(p.notices.empty());
  CHECK(p.block_paths().size() == 2);
}

TEST_CASE("an error below is the reader's, and nothing of it is kept") {
  cached_place p;
  p.below->add("far://a", 8'000);
  p.below->fails_from = 1'000;
  const auto cache = p.cache();
  const auto file = cache->open("far://a");
  std::string buffer(2'000, '\0');
  const auto into = std::as_writable_bytes(std::span(buffer));
  CHECK(file->read_at(500, into) == 500);   // the bytes before the error, as without a cache
  CHECK(buffer.compare(0, 500, p.text("far://a"), 500, 500) == 0);
  CHECK(failure_of([&] { file->read_at(1'000, into); }).find("the line is dead") != std::string::npos);
  CHECK(failure_of([&] { file->read_at(5'000, into); }).find("the line is dead") != std::string::npos);
  CHECK(p.block_paths().empty());
  p.below->fails_from = ~std::uint64_t{0};
  CHECK(read_complete(*cache, "far://a") == p.text("far://a"));
  CHECK(p.block_paths().size() == 2);
  p.below->add("far://b", 8'000);
  p.below->cut_at = 5'000;   // a storage whose file is shorter than it reported
  CHECK(read_complete(*cache, "far://b") == p.text("far://b").substr(0, 5'000));
  CHECK(p.block_paths().size() == 3);
  CHECK(p.notices.empty());
}

TEST_CASE("folders that cannot be used, and contradicting options") {
  cached_place p;
  p.below->add("far://a", 6'000);
  std::ofstream(p.folder / "file") << "x";
  p.options.folder = p.folder / "file/below";
  for (int i = 0; i < 2; ++i) CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  REQUIRE(p.notices.size() == 2);   // of two caches
  CHECK(p.notices[0].find("cannot create the folder") != std::string::npos);
  p.options.folder = p.folder / "new/deep";
  std::filesystem::create_directories(p.options.folder);
  std::filesystem::create_symlink("/tmp", mr::detail::cache_root(p.options.folder));   // a trap
  CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  CHECK(p.notices.size() == 3);
  p.options.notice = nullptr;
  CHECK(captured_stderr([&] { p.cache(); }).starts_with("millrace: the run continues without the cache"));

  const mr::storage at(p.below);
  CHECK(failure_of([&] { mr::cached(at, {}); }).find("the cache has no folder") != std::string::npos);
  CHECK(failure_of([&] { mr::cached(mr::storage(), {.folder = "x"}); })
            .find("the cache cannot wrap the local file system") != std::string::npos);
  CHECK(failure_of([&] { mr::cached(at, {.folder = "x", .keep_free_share = 1.5}); }).find("expected 0 to 1") !=
        std::string::npos);
  CHECK(failure_of([&] { mr::cached(at, {.folder = "x", .wait_limit = std::chrono::nanoseconds(-1)}); })
            .find("wait_limit is out of range: got -1 ns") != std::string::npos);
}

TEST_CASE("mr::cached is a storage, and its statistics are printed as a sentence") {
  cached_place p;
  p.below->add("far://a", 5'000);
  const mr::cached data(mr::storage(p.below), p.options);
  const mr::storage at = data;
  for (int i = 0; i < 4; ++i) CHECK(read_complete(*at.implementation(), "far://a") == p.text("far://a"));
  CHECK(data.statistics().text() ==
        "75.0 % of 20.0 kB read from the cache; 5.00 kB fetched, 0.00 B bypassed the cache");
  struct {
    mr::storage storage;
  } options{.storage = data};
  CHECK(!options.storage.is_local());
}

TEST_CASE("the contents of a cache and its damaged blocks") {
  cached_place p;
  CHECK(failure_of([&] { mr::contents_of_cache(p.folder.path()); }).find("does not contain a cache of this user") !=
        std::string::npos);
  p.below->add("far://b", 9'000, "x");
  p.below->add("far://a", 5'000);
  const auto cache = p.cache();
  CHECK(read_complete(*cache, "far://b") == p.text("far://b"));
  std::string buffer(10, '\0');
  cache->open("far://a")->read_at(4'990, std::as_writable_bytes(std::span(buffer)));
  mr::cache_contents contents = mr::contents_of_cache(p.folder.path());
  REQUIRE(contents.files.size() == 2);
  CHECK(contents.files[0].name == "far://a");
  CHECK(contents.files[0].cached_bytes == 904);
  CHECK(contents.files[1].version == "x");
  CHECK(contents.files[1].share() == 1);
  CHECK(contents.files[1].blocks == 3);
  CHECK(contents.files[1].used_ns > 1'000'000'000'000'000'000);
  CHECK(contents.disk_bytes == p.cached_bytes());
  CHECK(contents.blocks == 4);
  CHECK((contents.damaged_blocks == 0 && contents.parts == 0));

  flip(p.path_of("far://b"), 4'096 + 700);
  flip(p.block_paths().at(p.path_of("far://b") == p.block_paths()[0] ? 1 : 0), 100);
  std::ofstream(p.path_of("far://b") + ".part") << "x";
  contents = mr::contents_of_cache(p.folder.path());
  CHECK(contents.damaged_blocks == 2);
  CHECK(contents.parts == 1);
  CHECK(contents.blocks == 4);
  CHECK(mr::contents_of_cache(p.folder.path(), false).damaged_blocks == 1);   // only heads
  CHECK(p.block_paths().size() == 5);
}

TEST_CASE("the storage below learns which blocks will be fetched from it, without those that the cache has") {
  cached_place p;
  p.below->add("far://a", 40'000);
  const auto cache = p.cache();
  const auto file = cache->open("far://a");
  const auto announced = [&](std::vector<mr::byte_range> ranges) {
    p.below->announced.clear();
    file->will_read(ranges);
    return p.below->announced;
  };
  CHECK(announced({{100, 50}, {3'000, 10}, {4'000, 200}}) == "0+8192 ");
  CHECK(announced({{0, 1}, {20'000, 1}, {39'999, 500}, {50'000, 1}}) == "0+4096 16384+4096 36864+4096 ");
  std::byte one{};
  CHECK(file->read_at(20'000, {&one, 1}) == 1);
  CHECK(announced({{0, 1}, {20'000, 1}}) == "0+4096 ");
  CHECK(announced({{16'500, 10}}).empty());
  CHECK(announced({{}}) == "0+16384 20480+20480 ");
}
