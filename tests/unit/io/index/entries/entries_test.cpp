// Entry points in the file of an index: read with their payloads, and never returned if they are wrong.
#include "entry_shards.hpp"

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
