// Entry points in the file of an index: read with their payloads, and never returned if they are wrong.
#include "../../cache/distant_files.hpp"
#include "entry_shards.hpp"

#include <chrono>
#include <filesystem>
#include <functional>

using namespace entry_test;

using enum mr::detail::index_file_state;

TEST_CASE("fields are delivered with their own entries, in any grouping of reads") {
  const temporary_folder f;
  const auto names = write_shards(f, 1, 200);
  for (const unsigned threads : {1U, 4U}) {
    std::filesystem::remove(mr::detail::index_path(names[0]));
    const auto build = make(names, {.threads = threads});
    CHECK(build.counts.entries_built == 1);
    CHECK(build.counts.entries_inspected == 200);
    CHECK(build.counts.entries_unreadable == 0);
    auto loaded = mr::detail::load_index(mr::detail::index_path(names[0]), mr::detail::identify_shard(names[0]));
    REQUIRE(loaded.state == good);
    CHECK(loaded.index.entries().ends == build.indexes[0]->entries().ends);
    CHECK(loaded.index.entries().fields() == 200 - 22 - 16);   // of 7 bytes, and of 9, which are shorter than theirs
    CHECK(loaded.index.known_checksums() == loaded.index.members() - 40);   // but of empty texts
    const std::uint64_t file_bytes = std::filesystem::file_size(mr::detail::index_path(names[0]));
    CHECK(file_bytes == loaded.index.entries().begin_at + loaded.index.entries().bytes());
    for (const std::size_t bytes_per_read : {std::size_t{1}, std::size_t{5'000}, std::size_t{1} << 20})
      for (const std::vector<std::string>& fields : {std::vector<std::string>{}, {"jpg", "cls"}, {"cls"}}) {
        mr::file_source source(names[0]), entries(mr::detail::index_path(names[0]));
        mr::detail::indexed_reader reader(source, loaded.index, shared_pool(),
                                          {.fields = fields, .bytes_per_read = bytes_per_read}, &entries);
        const std::size_t with_entries = read_in_lists(reader, 200, true, bytes_per_read);
        CHECK((with_entries > 0) == (fields.size() != 1));
        CHECK(reader.counters().with_entries >= with_entries / 2);
        CHECK(reader.counters().entries_refused == 0);
      }
  }
}

TEST_CASE("an index without entries is written as before, and one with entries differs by a stated part") {
  const temporary_folder f;
  const auto names = write_shards(f, 1, 20);
  const std::string path = mr::detail::index_path(names[0]);
  (void)mr::detail::build_indexes(names);
  const std::string plain = load(path);
  std::uint32_t version = 0;
  std::memcpy(&version, plain.data() + 12, 4);
  CHECK(version == 1);
  CHECK_FALSE(mr::detail::summarize_index(path, mr::detail::identify_shard(names[0])).entries_built);
  const auto build = make(names);
  const std::string with = load(path);
  std::memcpy(&version, with.data() + 12, 4);
  CHECK(version == 2);
  CHECK(with.size() == plain.size() + 16 + 4 * build.indexes[0]->members() + build.indexes[0]->entries().bytes());
  const auto head = mr::detail::summarize_index(path, mr::detail::identify_shard(names[0]));
  CHECK(head.entries_built);
  CHECK(head.entry_bytes == build.indexes[0]->entries().bytes());
  CHECK(build.indexes[0]->fingerprint() ==
        mr::detail::load_index(path, mr::detail::identify_shard(names[0])).index.fingerprint());
  CHECK(f.file_count() == 2);
}

TEST_CASE("with any flipped bit and any cut, wrong entries are never returned") {
  const temporary_folder f;
  const auto names = write_shards(f, 1, 6);
  const std::string path = mr::detail::index_path(names[0]);
  const auto build = make(names);
  const std::string file = load(path);
  const auto identity = mr::detail::identify_shard(names[0]);
  const std::size_t begin = build.indexes[0]->entries().begin_at;
  const std::uint64_t fields = build.indexes[0]->entries().fields();
  REQUIRE(fields == 4);
  const auto read = [&](const std::string& changed) {
    save(path, changed);
    auto loaded = mr::detail::load_index(path, identity);
    if (loaded.state != good) return std::pair(loaded.state, std::size_t{0});
    mr::file_source source(names[0]), entries(path);
    mr::detail::indexed_reader reader(source, loaded.index, shared_pool(), {}, &entries);
    std::vector<std::uint32_t> numbers{0, 1, 2, 3, 4, 5};
    std::vector<mr::record> records(6);
    CHECK(reader.read(numbers, records) == 6);
    std::size_t right = 0;
    for (const auto& r : records) right += entries_text(r["jpg"]) == expected_entries(r["jpg"]) && has_some(r["jpg"]);
    CHECK(reader.counters().with_entries == right);
    CHECK(reader.counters().entries_refused == fields - right);
    return std::pair(loaded.state, right);
  };
  CHECK(read(file) == std::pair(good, std::size_t{fields}));
  std::size_t detected = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); bit += bit / 8 < begin ? 5 : 1) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto [state, right] = read(flipped);
    detected += bit / 8 < begin ? state != good : state == good && right == fields - 1;
    if (bit / 8 < begin ? state == good : right != fields - 1) FAIL_CHECK("bit ", bit, " of ", 8 * file.size());
  }
  CHECK(detected > 8 * (file.size() - begin));
  for (std::size_t size = 0; size < file.size(); ++size)
    if (read(file.substr(0, size)).first == good) FAIL_CHECK("a cut after ", size, " bytes");
  CHECK(read(file + "x").first == damaged);
}

TEST_CASE("a file that is cut or replaced while it is open returns payloads without entries") {
  const temporary_folder f;
  const auto names = write_shards(f, 1, 40);
  const std::string path = mr::detail::index_path(names[0]);
  const auto build = make(names);
  mr::file_source source(names[0]), entries(path);
  mr::detail::indexed_reader reader(source, *build.indexes[0], shared_pool(), {}, &entries);
  const std::size_t uncut = read_in_lists(reader, 40, true, 1);
  const std::string bytes = load(path);
  std::filesystem::resize_file(path, build.indexes[0]->entries().begin_at + build.indexes[0]->entries().bytes() / 2);
  const std::size_t cut = read_in_lists(reader, 40, false, 1);
  CHECK(cut < uncut);
  CHECK(reader.counters().entries_refused > 0);
  save(path, bytes.substr(0, build.indexes[0]->entries().begin_at) + std::string(bytes.size(), '\7'));
  CHECK(read_in_lists(reader, 40, false, 1) == 0);
}

TEST_CASE("a table of entries that an attacker wrote leads to no byte outside of the file, and to no large memory") {
  const temporary_folder f;
  const auto names = write_shards(f, 1, 6);
  const std::string path = mr::detail::index_path(names[0]);
  const auto build = make(names);
  const std::string file = load(path);
  const auto identity = mr::detail::identify_shard(names[0]);
  const auto& table = build.indexes[0]->entries();
  const auto members = build.indexes[0]->members();
  const std::size_t ends_at = table.begin_at - 4 * members;
  const auto load_with = [&](const std::function<void(mr::detail::index_front&, std::uint32_t*)>& change) {
    std::string bad = file;
    mr::detail::index_front front;
    std::memcpy(static_cast<void*>(&front), bad.data(), sizeof front);
    std::vector<std::uint32_t> ends(members);
    std::memcpy(ends.data(), bad.data() + ends_at, 4 * members);
    change(front, ends.data());
    front.entries.ends_checksum = mr::crc32c(std::as_bytes(std::span(ends)));
    front.head.head_checksum = front.head.expected_head_checksum();
    front.entries.checksum = front.entries.expected_checksum(front.head);
    std::memcpy(bad.data(), &front, sizeof front);
    std::memcpy(bad.data() + ends_at, ends.data(), 4 * members);
    save(path, bad);
    const auto loaded = mr::detail::load_index(path, identity);
    CHECK(loaded.index.entries().built == (loaded.state == good));
    return loaded.state;
  };
  // Each sample has cls, jpg, txt: member 1 is the first jpg, and the first with entries.
  const std::uint32_t size = table.ends[1];
  CHECK(load_with([](auto&, auto*) {}) == good);
  CHECK(load_with([&](auto&, auto* ends) { ends[1] = size - 1, ends[2] = size - 1, ends[3] = size - 1; }) == good);
  CHECK(load_with([](auto&, auto* ends) { ends[0] = 1; }) == damaged);                     // no room for a checksum
  CHECK(load_with([](auto&, auto* ends) { ends[0] = 5; }) == good);                        // one byte, of one
  CHECK(load_with([](auto&, auto* ends) { ends[0] = 6; }) == damaged);                     // longer than its payload
  CHECK(load_with([&](auto&, auto* ends) { ends[2] = size + 5; }) == damaged);             // of an empty payload
  CHECK(load_with([&](auto&, auto* ends) { ends[2] = size - 1; }) == damaged);             // it decreases
  CHECK(load_with([&](auto&, auto* ends) { ends[members - 1] += 5; }) == damaged);         // after the file's end
  CHECK(load_with([](auto& front, auto*) { front.entries.bytes += 1; }) == damaged);
  CHECK(load_with([](auto& front, auto*) { front.entries.bytes = ~std::uint64_t{0}; }) == damaged);
  CHECK(load_with([](auto& front, auto*) { front.entries.bytes = std::uint64_t{1} << 32; }) == damaged);
  CHECK(load_with([](auto& front, auto*) { front.head.version = 1; }) == damaged);
  CHECK(load_with([](auto& front, auto*) { front.head.version = 3; }) == stale);
  CHECK(load_with([](auto& front, auto*) { front.head.counts.members -= 1; }) == damaged);
}

// Entry points of many shards: built once, kept with new checksums, and lost with their shard.
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
  CHECK(reserved == 48 * 2 * mr::detail::entry_file_cache::chunk_bytes);
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
  mr::detail::entry_file_cache cache({.limit_bytes = 300});
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
