#include "../io/tar_bytes.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/token_files.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/pack.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <vector>

namespace mr = millrace;

namespace {

using windows = std::vector<std::vector<std::uint32_t>>;

windows read_all(const std::string& path, const mr::token_files_options& options,
                 mr::event_counts* counts = nullptr) {
  mr::detail::token_reader reader(path, options);
  windows all;
  while (auto one = reader.next()) all.push_back(one->ids);
  CHECK(!reader.next());
  if (counts) reader.report(*counts);
  return all;
}

}  // namespace

TEST_CASE("windows of tokens of two bytes and of four") {
  const temporary_folder folder;
  const std::uint16_t narrow[] = {1, 2, 65'535, 4, 5, 6, 7};
  const std::uint32_t wide[] = {1, 2, 70'000};
  tar_test::save(folder / "a.u16", {reinterpret_cast<const char*>(narrow), sizeof narrow});
  tar_test::save(folder / "b.u32", {reinterpret_cast<const char*>(wide), sizeof wide});
  tar_test::save(folder / "c.bin", {reinterpret_cast<const char*>(wide), sizeof wide});
  tar_test::save(folder / "none.u16", "");
  tar_test::save(folder / "odd.u16", "123");

  mr::event_counts counts;
  CHECK(read_all(folder / "a.u16", {.length = 3}, &counts) == windows{{1, 2, 65'535}, {4, 5, 6}});
  REQUIRE(counts.counts().size() == 1);
  CHECK(counts.counts()[0].times == 1);
  CHECK(read_all(folder / "a.u16", {.length = 3, .keep_short = true}) == windows{{1, 2, 65'535}, {4, 5, 6}, {7}});
  const windows overlapping{{1, 2, 65'535}, {65'535, 4, 5}, {5, 6, 7}};
  CHECK(read_all(folder / "a.u16", {.length = 3, .stride = 2}) == overlapping);
  CHECK(read_all(folder / "a.u16", {.length = 3, .stride = 2, .keep_short = true}) == overlapping);
  CHECK(read_all(folder / "a.u16", {.length = 2, .stride = 5}) == windows{{1, 2}, {6, 7}});
  CHECK(read_all(folder / "a.u16", {.length = 8}).empty());
  CHECK(read_all(folder / "b.u32", {.length = 3}) == windows{{1, 2, 70'000}});
  CHECK(read_all(folder / "c.bin", {.length = 3, .token_bytes = 4}) == windows{{1, 2, 70'000}});
  CHECK(read_all(folder / "c.bin", {.length = 6}) == windows{{1, 0, 2, 0, 4'464, 1}});
  CHECK(read_all(folder / "none.u16", {.length = 3}).empty());
  CHECK_THROWS_WITH_AS(read_all(folder / "odd.u16", {}),
                       doctest::Contains("has a partial token: got 3 bytes, expected a multiple of 2 bytes"),
                       mr::data_error);
  CHECK_THROWS_AS(read_all(folder / "not there.u16", {}), mr::io_error);
  CHECK_THROWS_AS(mr::token_files(folder / "a.u16", {.length = 0}), mr::setup_error);
  CHECK_THROWS_AS(mr::token_files(folder / "a.u16", {.token_bytes = 3}), mr::setup_error);
  CHECK(mr::token_files(folder.path()).source.shards() == 5);
  CHECK(mr::token_files(folder / "{a,none}.u16").source.shards() == 2);
}

TEST_CASE("a file that is truncated while it is read is an error, not zeros") {
  const temporary_folder folder;
  const std::string path = folder / "long.u16";
  tar_test::save(path, std::string(600'000, '\1'));
  mr::detail::token_reader reader(path, {.length = 50'000});
  CHECK(reader.next()->ids == std::vector<std::uint32_t>(50'000, 0x0101));
  std::filesystem::resize_file(path, 300'001);
  CHECK(reader.next());   // read with the first
  CHECK_THROWS_WITH_AS(
      for (int i = 0; i < 4; ++i) static_cast<void>(reader.next()), doctest::Contains("the file ends too early"),
      mr::io_error);
  // And with distant windows, so that each is read alone.
  tar_test::save(path, std::string(600'000, '\1'));
  mr::detail::token_reader apart(path, {.length = 10, .stride = 100'000});
  CHECK(apart.next());
  std::filesystem::resize_file(path, 200'010);
  CHECK_THROWS_AS(static_cast<void>(apart.next()), mr::io_error);
}

namespace {

using ids = std::vector<std::uint32_t>;

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// An .idx file as Megatron's IndexedDatasetBuilder writes it.
struct index_file {
  std::uint64_t version = 1;
  std::uint8_t code = 8;                       // u16
  std::vector<std::int32_t> lengths{};
  std::vector<std::int64_t> documents{0};      // the number of the first sequence of each document, then their number
  std::int64_t shift_bytes = 0;                // added to the offset of the second sequence: a mistake
  std::size_t token_bytes = 2;

  std::string bytes() const {
    std::string all("MMIDIDX\0\0", 9);
    append(all, version);
    append(all, code);
    append(all, std::uint64_t{lengths.size()});
    append(all, std::uint64_t{documents.size()});
    for (const std::int32_t length : lengths) append(all, length);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      append(all, offset + (i == 1 ? shift_bytes : 0));
      offset += lengths[i] * static_cast<std::int64_t>(token_bytes);
    }
    for (const std::int64_t document : documents) append(all, document);
    return all;
  }
};

std::vector<ids> read_documents(const std::string& path, mr::event_counts* counts = nullptr) {
  mr::detail::token_reader reader(path, {.documents = true});
  std::vector<ids> all;
  while (auto one = reader.next()) all.push_back(one->ids);
  if (counts) reader.report(*counts);
  return all;
}

template <class T>
std::string numbers(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) append(bytes, static_cast<T>(100 + i));
  return bytes;
}

const index_file usual{.lengths = {3, 2, 0, 4}, .documents = {0, 2, 3, 4}};   // documents of 5, 0 and 4 tokens

}  // namespace

TEST_CASE("the documents of Megatron's files are the items, and empty documents are counted") {
  const temporary_folder folder;
  tar_test::save(folder / "a.bin", numbers<std::uint16_t>(9));
  tar_test::save(folder / "a.idx", usual.bytes());
  const std::vector<ids> expected{{100, 101, 102, 103, 104}, {105, 106, 107, 108}};
  mr::event_counts counts;
  CHECK(read_documents(folder / "a.bin", &counts) == expected);
  REQUIRE(counts.counts().size() == 1);
  CHECK(counts.counts()[0].times == 1);

  index_file wide = usual;
  wide.code = 4;
  wide.token_bytes = 4;
  tar_test::save(folder / "w.bin", numbers<std::int32_t>(9));
  tar_test::save(folder / "w.idx", wide.bytes() + std::string(4, '\0'));   // with the modes of a multimodal set
  CHECK(read_documents(folder / "w.bin") == expected);

  const mr::detail::token_data_options options{.windows = {.documents = true}};
  mr::detail::token_data data(mr::detail::file_list({folder / "a.bin", folder / "w.bin"}, {}), options);
  CHECK(data.counts() == std::vector<std::uint64_t>{2, 2});
  CHECK(data.size_bytes() == 9 * 2 + 9 * 4);
  mr::detail::token_data::access reader(data, {});
  CHECK(reader.read({1, 1}).ids == expected[1]);
  CHECK(reader.read({0, 0}).ids == expected[0]);
  CHECK(reader.read({1, 0}).ids == expected[0]);

  // Other bounds of the same bytes are other data.
  index_file other = usual;
  other.documents = {0, 1, 3, 4};
  tar_test::save(folder / "a.idx", other.bytes());
  const mr::detail::token_data changed(mr::detail::file_list({folder / "a.bin", folder / "w.bin"}, {}), options);
  CHECK(changed.fingerprint() != data.fingerprint());
}

TEST_CASE("a session packs the documents of Megatron's files, each token once") {
  const temporary_folder folder;
  tar_test::save(folder / "a.bin", numbers<std::uint16_t>(9));
  tar_test::save(folder / "a.idx", usual.bytes());
  mr::session run(mr::token_files(folder / "a.bin", {.documents = true}) | mr::pack({.length = 4, .separator = 7}) |
                  mr::batch<&mr::packed::ids>({.size = 1, .drop_last = false}));
  ids all;
  for (auto& b : run) {
    const auto row = b.get<&mr::packed::ids>();
    all.insert(all.end(), row.data, row.data + 4);
  }
  CHECK(all == ids{100, 101, 102, 103, 104, 7, 105, 106, 107, 108, 7, 7});
}

TEST_CASE("an index that does not match its .bin file is an error that names the index") {
  const temporary_folder folder;
  tar_test::save(folder / "a.bin", numbers<std::uint16_t>(9));
  const auto fails = [&](const index_file& index, const char* text) {
    tar_test::save(folder / "a.idx", index.bytes());
    CHECK_THROWS_WITH_AS(read_documents(folder / "a.bin"), doctest::Contains(text), mr::data_error);
    CHECK_THROWS_WITH_AS(read_documents(folder / "a.bin"), doctest::Contains("a.idx"), mr::data_error);
  };
  const auto with = [](auto change) {
    index_file index = usual;
    change(index);
    return index;
  };
  fails(with([](index_file& i) { i.version = 2; }), "has another version: got 2, expected 1");
  fails(with([](index_file& i) { i.code = 7; }), "has tokens of another type: got code 7");
  fails(with([](index_file& i) { i.code = 77; }), "has tokens of another type: got code 77");
  fails(with([](index_file& i) { i.shift_bytes = 2; }), "has sequences that do not follow one another: sequence 1 is "
                                                        "at byte 8 with 2 tokens, expected byte 6");
  fails(with([](index_file& i) { i.lengths[2] = -1; }), "sequence 2 is at byte 10 with -1 tokens");
  fails(with([](index_file& i) { i.documents = {0, 3, 2, 4}; }), "has documents in the wrong order: document 2 begins "
                                                                 "at sequence 2 of 4");
  fails(with([](index_file& i) { i.documents = {0, 2, 9}; }), "document 2 begins at sequence 9 of 4");
  fails(with([](index_file& i) { i.documents = {1, 4}; }), "document 0 begins at sequence 1 of 4");
  fails(with([](index_file& i) { i.documents = {0, 2}; }), "describes another .bin file");
  fails(with([](index_file& i) { i.lengths[3] = 5; }),
        "got 10 tokens in the 4 sequences of its documents, expected the 9 tokens");
  fails(with([](index_file& i) { i.documents.clear(); }), "does not have the size that its counts declare");

  const std::string bytes = usual.bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    tar_test::save(folder / "a.idx", bytes.substr(0, length));
    CHECK_THROWS_AS(read_documents(folder / "a.bin"), mr::data_error);
  }
  for (const std::size_t at : {18u, 26u}) {   // counts that overflow products
    std::string huge = bytes;
    std::memset(huge.data() + at, 0xff, 8);
    tar_test::save(folder / "a.idx", huge);
    CHECK_THROWS_WITH_AS(read_documents(folder / "a.bin"), doctest::Contains("does not have the size"), mr::data_error);
  }
  std::filesystem::remove(folder / "a.idx");
  CHECK_THROWS_WITH_AS(read_documents(folder / "a.bin"), doctest::Contains("file next to the file does not exist"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::token_files(folder / "a.bin", {.token_bytes = 2, .documents = true}),
                       doctest::Contains("options that exclude each other"), mr::setup_error);
}

TEST_CASE("an .idx file is read once, not at each pass") {
  const temporary_folder folder;
  tar_test::save(folder / "a.bin", numbers<std::uint16_t>(9));
  tar_test::save(folder / "a.idx", usual.bytes());
  const mr::detail::token_files_source source({folder / "a.bin"}, {.documents = true});
  const auto lengths = [copy = source](std::uint64_t pass) {
    std::vector<std::size_t> all;
    auto reader = copy.open(0, pass);
    while (auto one = reader.next()) all.push_back(one->ids.size());
    return all;
  };
  CHECK(lengths(0) == std::vector<std::size_t>{5, 4});
  std::filesystem::remove(folder / "a.idx");
  CHECK(lengths(1) == std::vector<std::size_t>{5, 4});
  tar_test::save(folder / "a.bin", numbers<std::uint16_t>(10));   // another size: the index is needed again
  CHECK_THROWS_AS(lengths(2), mr::setup_error);
}
