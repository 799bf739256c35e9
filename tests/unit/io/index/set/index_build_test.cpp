// The indexes of many shards: built, kept, loaded again, and rebuilt if necessary.
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace mr = millrace;
using namespace tar_test;

namespace {

std::vector<std::string> write_shards(const temporary_folder& f, std::size_t count) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < count; ++i) {
    std::string tar;
    for (std::size_t k = 0; k <= i; ++k) tar += file("k" + std::to_string(k) + ".txt", std::to_string(i));
    save(paths.emplace_back(f / ("s-" + std::to_string(i) + ".tar")), tar + end_marker());
  }
  return paths;
}

}  // namespace

TEST_CASE("indexes are built once, kept next to their shards, and loaded from then on") {
  const temporary_folder f;
  const auto shards = write_shards(f, 20);
  for (const unsigned threads : {1U, 3U, 50U}) {
    const auto build = mr::detail::build_indexes(shards, {.threads = threads});
    CHECK(build.counts.built == 20);
    CHECK(build.counts.loaded == 0);
    CHECK(build.counts.samples == 210);
    CHECK(build.counts.scanned_bytes == 210 * 1024 + 20 * 1024);
    REQUIRE(build.indexes.size() == 20);
    CHECK(build.indexes[7]->samples() == 8);
    CHECK(f.file_count() == 40);
    const auto loaded = mr::detail::build_indexes(shards, {.threads = threads});
    CHECK(loaded.counts.loaded == 20);
    CHECK(loaded.counts.samples == 210);
    CHECK(loaded.counts.scanned_bytes == 0);
    CHECK(loaded.indexes[7]->fingerprint() == build.indexes[7]->fingerprint());
    for (const auto& shard : shards) std::filesystem::remove(mr::detail::index_path(shard));
  }
  CHECK(mr::detail::build_indexes(shards, {.store = false}).counts.built == 20);
  CHECK(f.file_count() == 20);
  CHECK(mr::detail::build_indexes({}).indexes.empty());
}

TEST_CASE("stale and damaged indexes are rebuilt, and damaged and compressed shards are reported") {
  const temporary_folder f;
  auto shards = write_shards(f, 4);
  (void)mr::detail::build_indexes(shards);
  save(shards[0], file("new.txt", "1") + file("newer.txt", "2") + end_marker());
  std::string index = load(mr::detail::index_path(shards[1]));
  index[index.size() / 2] = static_cast<char>(index[index.size() / 2] ^ 16);
  save(mr::detail::index_path(shards[1]), index);
  const std::string tar = small_shard().bytes();
  save(shards.emplace_back(f / "damaged.tar"), tar.substr(0, 3'500));
  save(shards.emplace_back(f / "empty.tar"), "");
  if (have("gzip")) save(shards.emplace_back(f / "packed.tar"), through("gzip -c", tar));
  const auto again = mr::detail::build_indexes(shards);
  CHECK(again.counts.rebuilt_stale == 1);
  CHECK(again.counts.rebuilt_damaged == 1);
  CHECK(again.counts.loaded == 2);
  CHECK(again.counts.built == 2);
  CHECK(again.counts.damaged_shards == 2);
  CHECK(again.counts.compressed == (have("gzip") ? 1 : 0));
  CHECK(again.indexes[0]->samples() == 2);
  CHECK(again.indexes[1]->samples() == 2);
  CHECK(again.indexes[4]->samples() == 1);
  const auto loaded = mr::detail::build_indexes(shards);
  CHECK(loaded.counts.loaded == 6);
  CHECK(loaded.counts.damaged_shards == 2);
  CHECK(loaded.counts.samples == again.counts.samples);
}

TEST_CASE("an index that differs only in time is rebuilt, with the checksums of members at the same offsets") {
  const temporary_folder f;
  const std::string path = f / "s.tar";
  const auto written_later = [&](const std::string& tar) {
    save(path, tar + end_marker());
    static int seconds = 0;
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(++seconds));
  };
  const std::vector<std::string> shards{path};
  const auto learn = [&] {
    auto index = mr::detail::build_indexes(shards).indexes[0];
    for (std::uint32_t m = 0; m < index->members(); ++m) index->learn_checksum(m, 100 + m);
    mr::detail::store_index(mr::detail::index_path(path), *index);
  };
  const std::string a = file("a.txt", "1") + file("a.cls", "22"), b = file("b.txt", "3"), c = file("c.txt", "4");
  written_later(a + b + c);
  learn();
  written_later(a + file("b.txt", "9") + c);   // another payload: at the same place, of the same size
  auto again = mr::detail::build_indexes(shards, {.heads_only = true});
  CHECK(again.counts.rebuilt_stale == 1);
  CHECK(again.touched == std::vector<std::size_t>{0});
  REQUIRE(again.indexes[0]);
  for (std::uint32_t m = 0; m < 4; ++m) CHECK(again.indexes[0]->checksum(m) == 100 + m);
  again = mr::detail::build_indexes(shards);   // it was kept
  CHECK(again.counts.loaded == 1);
  CHECK(again.touched.empty());
  CHECK(again.indexes[0]->known_checksums() == 4);
  written_later(file("a.txt", "12") + file("a.cls", "22") + file("other.txt", "3") + file("c.cls", "4"));
  // Another size, another key, another field: none of these is the same shard.
  again = mr::detail::build_indexes(shards);
  CHECK(again.indexes[0]->known_checksums() == 1);
  CHECK(again.indexes[0]->checksum(1) == 101);
  learn();
  written_later(a + b);   // another size: nothing is reused
  again = mr::detail::build_indexes(shards);
  CHECK(again.counts.rebuilt_stale == 1);
  CHECK(again.touched.empty());
  CHECK(again.indexes[0]->known_checksums() == 0);
}

TEST_CASE("a cache folder is created, and a failure is counted") {
  const temporary_folder f;
  const auto shards = write_shards(f, 3);
  CHECK(mr::detail::build_indexes(shards, {.files = {.cache_folder = f / "cache"}}).counts.built == 3);
  CHECK(mr::detail::build_indexes(shards, {.files = {.cache_folder = f / "cache"}}).counts.loaded == 3);
  CHECK(f.file_count() == 4);
  const auto homeless = mr::detail::build_indexes(shards, {.files = {.cache_folder = f / "none/cache"}});
  CHECK(homeless.counts.built == 3);
  CHECK(homeless.counts.not_stored == 3);
  CHECK(homeless.indexes[2]->samples() == 3);
  CHECK(homeless.store_failure.find("No such file") != std::string::npos);
}

TEST_CASE("the first shard of the list that cannot be read is the error, whatever the number of threads") {
  const temporary_folder f;
  auto shards = write_shards(f, 30);
  for (const std::size_t number : {11U, 12U, 25U}) std::filesystem::remove(shards[number]);
  for (const unsigned threads : {1U, 2U, 8U}) {
    try {
      (void)mr::detail::build_indexes(shards, {.threads = threads});
      FAIL("no error");
    } catch (const mr::io_error& e) {
      CHECK(e.where().shard == shards[11]);
    }
  }
}

TEST_CASE("heads alone contain counts and fingerprints, and the rest can be loaded later") {
  const temporary_folder f;
  const auto shards = write_shards(f, 20);
  const auto build = mr::detail::build_indexes(shards, {.heads_only = true});
  CHECK(build.counts.built == 20);   // no index whose head could be read
  const auto heads = mr::detail::build_indexes(shards, {.heads_only = true});
  CHECK(heads.counts.loaded == 20);
  CHECK(heads.counts.samples == 210);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    CHECK(heads.indexes[i] == nullptr);
    CHECK(heads.heads[i].samples == build.heads[i].samples);
    CHECK(heads.heads[i].samples == i + 1);
    CHECK(heads.heads[i].fingerprint == build.indexes[i]->fingerprint());
    CHECK(mr::detail::index_of(shards[i], heads.heads[i])->samples() == i + 1);
  }
  save(shards[3], file("other.txt", "x") + end_marker());
  CHECK_THROWS_AS(mr::detail::index_of(shards[3], heads.heads[3]), mr::data_error);
}

TEST_CASE("a damaged shard has a complete index, heads or not") {
  const temporary_folder f;
  save(f / "cut.tar", file("k0.txt", "x") + file("k1.txt", "y").substr(0, 700));
  const std::vector<std::string> shards{f / "cut.tar"};
  for (int i = 0; i < 2; ++i) {
    const auto build = mr::detail::build_indexes(shards, {.heads_only = true});
    REQUIRE(build.indexes[0] != nullptr);
    CHECK(build.indexes[0]->state() == mr::detail::shard_index::shard_state::damaged);
    CHECK_FALSE(build.heads[0].shard_is_complete);
  }
}

TEST_CASE("the previous index of a damaged or missing shard stays in its file, and is used on request") {
  const temporary_folder f;
  const std::vector<std::string> shards{f / "s.tar"};
  const std::string first = file("k0.txt", "x"), second = file("k1.txt", "y");
  save(shards[0], first + second + end_marker());
  CHECK(mr::detail::build_indexes(shards).counts.built == 1);
  const std::string before = load(mr::detail::index_path(shards[0]));
  save(shards[0], first + second.substr(0, 700));
  const auto cut = mr::detail::build_indexes(shards);
  CHECK(cut.indexes[0]->samples() == 1);
  CHECK(cut.damaged.empty());
  CHECK(cut.counts.damaged_shards == 1);
  CHECK(cut.counts.rebuilt_stale == 1);
  const auto older = mr::detail::build_indexes(shards, {.older_of_damaged = true});
  CHECK(older.indexes[0]->samples() == 2);
  CHECK(older.damaged == std::vector<std::size_t>{0});
  CHECK(older.counts.damaged_shards == 0);
  CHECK(older.counts.rebuilt_stale == 1);
  std::filesystem::remove(shards[0]);
  CHECK_THROWS_AS((void)mr::detail::build_indexes(shards), mr::io_error);
  const auto without_shard = mr::detail::build_indexes(shards, {.older_of_damaged = true});
  CHECK(without_shard.indexes[0]->samples() == 2);
  CHECK(without_shard.damaged == std::vector<std::size_t>{0});
  CHECK(without_shard.counts.loaded == 1);
  CHECK(load(mr::detail::index_path(shards[0])) == before);
}

TEST_CASE("the index of a shard without an end marker records that, and of a shortened one that it was cut") {
  const temporary_folder f;
  const std::string first = file("k0.txt", "x"), second = file("k1.txt", "y");
  const std::vector<std::string> shards{f / "plain.tar"};
  save(shards[0], first + second + std::string(512, '\0'));
  std::uint64_t fingerprint = 0;
  for (const bool was_kept : {false, true}) {   // built, then loaded: all of it, and its head
    const auto build = mr::detail::build_indexes(shards);
    CHECK(build.counts.loaded == (was_kept ? 1 : 0));
    CHECK(build.counts.damaged_shards == 0);
    CHECK(build.indexes[0]->state() == mr::detail::shard_index::shard_state::complete);
    CHECK(build.indexes[0]->facts().counters.missing_end_markers == 1);
    CHECK(build.indexes[0]->samples() == 2);
    fingerprint = build.indexes[0]->fingerprint();
    const auto heads = mr::detail::build_indexes(shards, {.heads_only = true});
    CHECK(heads.heads[0].without_end_marker);
    CHECK(heads.heads[0].shard_is_complete);
    CHECK(heads.heads[0].samples == 2);
  }
  save(shards[0], first);   // and the index still counts two
  try {
    (void)mr::detail::build_indexes(shards);
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(std::string(e.what()).find("plain.tar.millrace-index counts: got 1, expected 2") != std::string::npos);
    CHECK(e.where().shard == shards[0]);
  }
  CHECK(read_source(std::make_unique<mr::file_source>(shards[0])).message.find("got 1, expected 2") !=
        std::string::npos);
  save(shards[0], first + end_marker());   // with its end marker it is another shard
  CHECK(mr::detail::build_indexes(shards).counts.rebuilt_stale == 1);
  save(shards[0], first + second + end_marker());
  const auto marked = mr::detail::build_indexes(shards);
  CHECK(marked.indexes[0]->facts().counters.missing_end_markers == 0);
  CHECK_FALSE(marked.heads[0].without_end_marker);
  CHECK(marked.indexes[0]->fingerprint() == fingerprint);
}

TEST_CASE("progress too short to be read is not shown") {
  const temporary_folder f;
  const auto shards = write_shards(f, 30);
  int notices = 0;
  mr::detail::notice_outlet outlet([&](const mr::notice&) { ++notices; });
  (void)mr::detail::build_indexes(shards, {.notices = &outlet});
  CHECK(notices == 0);   // nothing lasted a second
}

TEST_CASE("temporary files of a killed process are removed when an index is built in that folder, and nothing else "
          "is") {
  const temporary_folder f;
  const std::string kernel = mr::detail::kernel_id();
  REQUIRE(kernel.size() == 12);
  const auto shards = write_shards(f, 2);
  const std::string left = f / (".s-9.tar.millrace-index." + kernel + "-7-0.partial"),
                    other = f / (".s-9.tar." + kernel + "-7-0.partial");
  save(left, "half");
  save(other, "half");
  CHECK(mr::detail::build_indexes(shards, {.store = false}).counts.built == 2);
  CHECK(std::filesystem::exists(left));
  CHECK(mr::detail::build_indexes(shards).counts.built == 2);
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK(std::filesystem::exists(other));
}
