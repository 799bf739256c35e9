// Entry points of many shards: built once, kept with new checksums, and lost with their shard.
#include "../../cache/distant_files.hpp"
#include "entry_shards.hpp"

#include <chrono>
#include <filesystem>

using namespace entry_test;

TEST_CASE("entries are built once, kept when checksums are learned, and lost with their shard") {
  const temporary_folder f;
  const auto names = write_shards(f, 3, 30);
  const auto entries_of = [&](std::size_t shard) {
    return mr::detail::load_index(mr::detail::index_path(names[shard]), mr::detail::identify_shard(names[shard]))
        .index.entries();
  };
  (void)mr::detail::build_indexes(names);
  CHECK(make(names, {.heads_only = true}).counts.entries_built == 3);
  CHECK(make(names, {.heads_only = true}).counts.entries_built == 0);
  CHECK(make(names).counts.entries_built == 0);
  const auto before = entries_of(1);
  REQUIRE(before.fields() > 20);

  SUBCASE("an index with more checksums is written with the entries of the file") {
    auto index = mr::detail::load_index(mr::detail::index_path(names[1]), mr::detail::identify_shard(names[1])).index;
    index.set_entries({});
    index.learn_checksum(2, 99);   // of the empty text
    REQUIRE(index.checksum(2) == 99);
    CHECK(mr::detail::store_index(mr::detail::index_path(names[1]), index).written);
    CHECK(index.entries().ends == before.ends);
    CHECK(entries_of(1).ends == before.ends);
    mr::detail::shard_data data(names);
    CHECK(read_all(data) > 60);
    CHECK(count_of(data, mr::detail::event_name::fields_refused) == 0);
  }
  SUBCASE("a shard with another time keeps its entries, and a payload that has changed gets no wrong ones") {
    std::string tar = load(names[1]);
    const std::size_t at = mr::detail::build_indexes(names).indexes[1]->member(1).offset_bytes;
    tar[at + 3] = static_cast<char>(tar[at + 3] ^ 1);
    save(names[1], tar);
    std::filesystem::last_write_time(names[1], std::filesystem::last_write_time(names[1]) + std::chrono::seconds(9));
    const auto again = mr::detail::build_indexes(names);
    CHECK(again.touched == std::vector<std::size_t>{1});
    CHECK(entries_of(1).ends == before.ends);
    mr::detail::shard_data plain(names, {.reader = {.checksums = false}});
    CHECK(read_all(plain) > 60);
    CHECK(count_of(plain, mr::detail::event_name::fields_refused) == 1);
    mr::detail::shard_data checks(names);
    CHECK_THROWS_WITH_AS(read_all(checks), doctest::Contains("the sample was changed"), mr::data_error);
  }
  SUBCASE("another shard of that name has none") {
    save(names[1], load(names[2]) + std::string(512, '\0'));
    (void)mr::detail::build_indexes(names);
    CHECK_FALSE(entries_of(1).built);
    CHECK(make(names).counts.entries_built == 1);
    CHECK(entries_of(1).built);
  }
  SUBCASE("nor has one of that size whose members are elsewhere") {
    std::string tar = load(names[1]);
    const std::size_t at = tar.find("k31.cls");
    REQUIRE(at != std::string::npos);
    tar[at + 4] = 'd';
    put_checksum(tar, at);
    save(names[1], tar);
    std::filesystem::last_write_time(names[1], std::filesystem::last_write_time(names[1]) + std::chrono::seconds(9));
    (void)mr::detail::build_indexes(names);
    CHECK_FALSE(entries_of(1).built);
  }
}

TEST_CASE("a payload that has changed is refused by its CRC and counted, if checksums are off") {
  const temporary_folder f;
  const auto names = write_shards(f, 1, 30);
  const auto build = make(names);
  const std::uint64_t fields = build.indexes[0]->entries().fields();
  const auto time = std::filesystem::last_write_time(names[0]);
  std::string tar = load(names[0]);
  for (const std::uint32_t member : {1U, 4U}) {
    const std::size_t at = build.indexes[0]->member(member).offset_bytes;
    tar[at] = static_cast<char>(tar[at] ^ 1);
  }
  save(names[0], tar);
  std::filesystem::last_write_time(names[0], time);
  mr::detail::shard_data data(names, {.reader = {.checksums = false}});
  CHECK(read_all(data) == fields - 2);
  mr::event_counts counts;
  data.report_reads(counts);
  REQUIRE(counts.counts().size() == 2);
  CHECK(mr::detail::event_of_text(counts.counts()[0].what) == mr::detail::event_name::fields_with_entries);
  CHECK(counts.counts()[0].times == fields - 2);
  CHECK(counts.counts()[1].times == 2);
  CHECK(count_of(data, mr::detail::event_name::fields_with_entries) == 0);   // each is reported once
}

TEST_CASE("errors of reading, building and writing are reported, and leave the index usable") {
  const temporary_folder f;
  const auto names = write_shards(f, 2, 30);
  (void)make(names, {.entries = {}});
  SUBCASE("an error of the maker is that of the call, and leaves no partial index") {
    for (const auto& name : names) std::filesystem::remove(mr::detail::index_path(name));
    for (const unsigned threads : {1U, 4U}) {
      mr::detail::index_build_options o{.threads = threads};
      o.entries = [](std::string_view, std::span<const std::byte>) -> std::vector<std::byte> {
        throw mr::setup_error("no", "Do otherwise");
      };
      CHECK_THROWS_AS(mr::detail::build_indexes(names, o), mr::setup_error);
    }
    CHECK(f.file_count() <= 4);
    CHECK(mr::detail::build_indexes(names).counts.samples == 60);
  }
  SUBCASE("a set without any entries is inspected once") {
    for (const auto& name : names) std::filesystem::remove(mr::detail::index_path(name));
    int calls = 0;
    mr::detail::index_build_options o{.threads = 1};
    o.entries = [&](std::string_view, std::span<const std::byte>) { return ++calls, std::vector<std::byte>(); };
    CHECK(mr::detail::build_indexes(names, o).counts.entries_built == 2);
    CHECK(calls == 168);   // empty payloads are not shown
    CHECK(mr::detail::build_indexes(names, o).counts.entries_built == 0);
    CHECK(calls == 168);
    mr::detail::shard_data data(names);
    CHECK(read_all(data) == 0);
  }
  SUBCASE("a damaged sample has none, and is counted") {
    for (const auto& name : names) std::filesystem::remove(mr::detail::index_path(name));
    { mr::detail::shard_data learns(names); (void)read_all(learns); }
    const auto time = std::filesystem::last_write_time(names[0]);
    std::string tar = load(names[0]);
    const std::size_t at = mr::detail::build_indexes(names).indexes[0]->member(1).offset_bytes;
    tar[at] = static_cast<char>(tar[at] ^ 1);
    save(names[0], tar);
    std::filesystem::last_write_time(names[0], time);
    const auto build = make(names);
    CHECK(build.counts.entries_unreadable == 1);
    CHECK(build.indexes[0]->entries().range_of(1).size_bytes == 0);
    CHECK(build.indexes[0]->entries().range_of(4).size_bytes > 0);
  }
  SUBCASE("indexes that cannot be stored get none, and no payload is read for them") {
    for (const auto& name : names) std::filesystem::remove(mr::detail::index_path(name));
    const auto build = make(names, {.files = {.cache_folder = f / "none/none"}});
    CHECK(build.counts.not_stored == 2);
    CHECK(build.counts.entries_inspected == 0);
    CHECK(make(names, {.store = false}).counts.entries_inspected == 0);
  }
}

TEST_CASE("entries of a storage arrive in chunks, within a limit that is reported") {
  const temporary_folder f;
  const auto names = write_shards(f, 4, 60);
  (void)make(names);
  const auto files = std::make_shared<distant_files>();
  for (const auto& name : names)
    for (const std::string& path : {name, mr::detail::index_path(name)}) files->files[path] = {load(path)};
  mr::detail::shard_data local(names);
  const std::uint64_t expected = read_all(local);
  CHECK(expected > 150);
  mr::detail::shard_data far(names, {.files = {.storage = mr::storage(files)}});
  const std::size_t reserved = far.expect({.window = 0, .lanes = 48, .max_held_bytes = std::size_t{256} << 20});
  CHECK(reserved == 48 * 2 * mr::detail::entry_cache::chunk_bytes);
  CHECK(read_all(far) == expected);
  const std::uint64_t reads = files->reads;
  CHECK(read_all(far) == expected);
  CHECK(files->reads - reads <= 240);   // of samples; entries are cached
  CHECK(count_of(far, mr::detail::event_name::fields_with_entries) == 2 * expected);
  // The index is read without its entries: heads and table.
  files->read_bytes = 0;
  (void)mr::detail::load_stored_index(mr::storage(files), names[0]);
  CHECK(files->read_bytes == files->files[mr::detail::index_path(names[0])].text.size());   // small: in one request
  // A folder for indexes gets its own entries.
  files->files.erase(mr::detail::index_path(names[0]));
  mr::detail::shard_data data(names, {.files = {.cache_folder = f / "kept", .storage = mr::storage(files)},
                                      .entries = entries_for});
  CHECK(read_all(data) == expected);
  const mr::detail::index_file_options in_folder{.cache_folder = f / "kept", .storage = mr::storage(files)};
  CHECK(std::filesystem::exists(mr::detail::index_path(names[0], in_folder)));
}

TEST_CASE("chunks of entries are evicted at the limit, the least recently used first") {
  mr::detail::entry_cache cache({.limit_bytes = 300});
  const auto chunk = [](std::size_t bytes) { return std::make_shared<const std::vector<std::byte>>(bytes); };
  cache.add({0, 0}, chunk(100));
  cache.add({0, 1}, chunk(100));
  cache.add({1, 0}, chunk(100));
  CHECK(cache.find({0, 0}));
  cache.add({1, 1}, chunk(100));
  CHECK(cache.held_bytes() == 300);
  CHECK_FALSE(cache.find({0, 1}));
  CHECK(cache.find({0, 0}));
  cache.add({0, 0}, chunk(100));   // it is there already
  CHECK(cache.held_bytes() == 300);
  cache.add({2, 0}, chunk(1'000));   // larger than the limit: alone
  CHECK(cache.held_bytes() == 1'000);
  CHECK(cache.find({2, 0}));
}
