#include <millrace/sources/token_files.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <random>

namespace mr = millrace;
using mr::detail::located_sample;
using mr::detail::ordered_sample;
using mr::detail::token_data;

namespace {

/// Files with these numbers of tokens, all different: token i of file f is 10,000 f + i, modulo 65,536.
std::vector<std::string> write_files(const temporary_folder& folder, const std::vector<std::size_t>& tokens) {
  std::vector<std::string> names;
  for (std::size_t f = 0; f < tokens.size(); ++f) {
    std::string bytes;
    for (std::size_t i = 0; i < tokens[f]; ++i) {
      const auto token = static_cast<std::uint16_t>(10'000 * f + i);
      bytes.append(reinterpret_cast<const char*>(&token), sizeof token);
    }
    names.push_back(folder / (std::to_string(f) + ".u16"));
    tar_test::save(names.back(), bytes);
  }
  return names;
}

std::vector<std::uint32_t> slow_window(const located_sample& s, const mr::detail::token_window_rule& rule,
                                       const std::vector<std::size_t>& tokens) {
  std::vector<std::uint32_t> ids;
  const std::size_t first = s.index * rule.stride;
  for (std::size_t i = first; i < std::min(first + rule.length, tokens[s.shard]); ++i)
    ids.push_back(static_cast<std::uint16_t>(10'000 * s.shard + i));
  return ids;
}

/// A storage that counts the announced ranges.
struct vault {
  struct file {
    std::string bytes;
    std::size_t* announced;
    mr::file_identity identity() const { return {.size_bytes = bytes.size(), .version = "1"}; }
    std::size_t read_at(std::uint64_t at, std::span<std::byte> buffer) {
      const std::size_t count = std::min(buffer.size(), bytes.size() - std::min<std::size_t>(bytes.size(), at));
      std::memcpy(buffer.data(), bytes.data() + at, count);
      return count;
    }
    void will_read(std::span<const mr::byte_range> ranges) { *announced += ranges.size(); }
  };
  std::shared_ptr<std::size_t> announced = std::make_shared<std::size_t>(0);
  std::unique_ptr<file> open(const std::string& name) const {
    if (!std::filesystem::exists(name)) return nullptr;
    return std::make_unique<file>(file{tar_test::load(name), announced.get()});
  }
};

}  // namespace

TEST_CASE("windows are the same by every way of reading: in order, by blocks, alone, from disk and from a storage") {
  const temporary_folder folder;
  const std::vector<std::size_t> tokens{300'000, 0, 5, 150'000, 64, 63};
  const auto names = write_files(folder, tokens);
  std::mt19937_64 random(3);
  const mr::detail::token_window_rule rules[] = {
      {64, 64, false}, {65, 64, false}, {64, 10, true}, {64, 1'000, true}, {9'000, 9'000, true}};
  for (const auto& rule : rules) {
    for (const bool local : {true, false}) {
      const vault place;
      const mr::storage at = local ? mr::storage() : mr::storage(place);
      for (const mr::detail::expected_order& order :
           {mr::detail::expected_order{}, {.window = 500, .lanes = 4, .max_held_bytes = std::size_t{64} << 20},
            {.window = 500, .lanes = 4, .max_held_bytes = 0}}) {
        token_data data(mr::detail::file_list(names, at), {.windows = rule});
        const bool by_blocks = data.expect(order) > 0;
        CHECK(by_blocks == (order.max_held_bytes > 0 && (!local || rule.stride * 2 <= 16'384)));
        std::vector<ordered_sample> positions;
        for (std::size_t f = 0; f < data.counts().size(); ++f)
          for (std::uint64_t i = 0; i < data.counts()[f]; ++i) positions.push_back({.sample = {f, i}});
        if (order.window > 1) std::shuffle(positions.begin(), positions.end(), random);
        for (std::size_t first = 0; first < positions.size(); first += 1'000) {
          const auto part = std::span(positions).subspan(first, std::min<std::size_t>(1'000, positions.size() - first));
          token_data::access reader(data, part);
          std::size_t wrong = 0;
          for (const ordered_sample& w : part)
            wrong += reader.read(w.sample).ids != slow_window(w.sample, rule, tokens);
          CHECK(wrong == 0);
        }
      }
      CHECK((*place.announced > 0) == !local);
    }
  }
}

TEST_CASE("counts, names, offsets and fingerprints of files of tokens") {
  const temporary_folder folder;
  const std::vector<std::size_t> tokens{10, 0, 7, 4};
  const auto names = write_files(folder, tokens);
  const auto print_of = [&](const mr::detail::token_data_options& o) {
    return token_data(mr::detail::file_list(names, {}), o).fingerprint();
  };
  token_data data(mr::detail::file_list(names, {}), {.windows = {4, 4, false}});
  CHECK(data.counts() == std::vector<std::uint64_t>{2, 0, 1, 1});
  CHECK(data.size_bytes() == 4 * 8);
  CHECK(data.name_of({2, 0}) == names[2] + ":0");
  CHECK(data.location_of({0, 1}).offset_bytes == 8);
  mr::event_counts counts;
  data.report(counts);
  REQUIRE(counts.counts().size() == 1);
  CHECK(counts.counts()[0].times == 2 + 3);
  CHECK(token_data(mr::detail::file_list(names, {}), {.windows = {4, 4, true}}).counts() ==
        std::vector<std::uint64_t>{3, 0, 2, 1});
  CHECK(token_data(mr::detail::file_list(names, {}), {.windows = {4, 3, true}}).counts() ==
        std::vector<std::uint64_t>{3, 0, 2, 1});
  const std::uint64_t print = data.fingerprint();
  CHECK(print_of({.windows = {4, 4, false}}) == print);
  CHECK(print_of({.windows = {4, 3, false}}) != print);
  CHECK(print_of({.windows = {5, 4, false}}) != print);
  CHECK(print_of({.windows = {4, 4, false}, .layout = {.token_bytes = 1}}) != print);
  CHECK_THROWS_WITH_AS(print_of({.windows = {11, 11, false}}),
                       doctest::Contains("got at most 10 tokens in a file, expected 11"), mr::setup_error);
}

TEST_CASE("a file that is replaced since the start is an error") {
  const temporary_folder folder;
  const auto names = write_files(folder, {1'000});
  token_data data(mr::detail::file_list(names, {}), {.windows = {10, 10, false}});
  std::filesystem::resize_file(names[0], 1'998);
  const std::vector<ordered_sample> positions{{.sample = {0, 3}}};
  token_data::access reader(data, positions);
  CHECK_THROWS_WITH_AS(static_cast<void>(reader.read({0, 3})), doctest::Contains("was replaced since the start"),
                       mr::io_error);
}

TEST_CASE("a .bin file next to an .idx file of Megatron has the type of the latter") {
  const temporary_folder folder;
  const std::uint32_t wide[] = {1, 70'000, 3, 4};
  tar_test::save(folder / "text.bin", {reinterpret_cast<const char*>(wide), sizeof wide});
  const auto ids = [&] {
    token_data data(mr::detail::file_list({folder / "text.bin"}, {}), {.windows = {4, 4, false}});
    token_data::access reader(data, {});
    return reader.read({0, 0}).ids;
  };
  CHECK(ids() == std::vector<std::uint32_t>{1, 0, 4'464, 1});
  std::string index("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17);
  index += '\4';   // i32
  tar_test::save(folder / "text.idx", index + std::string(40, '\0'));
  CHECK(ids() == std::vector<std::uint32_t>{1, 70'000, 3, 4});
}

TEST_CASE("blocks are read once while they fit, and again after they were dropped") {
  mr::detail::token_blocks blocks({.block_bytes = 10, .limit_bytes = 20});
  int reads = 0;
  const auto get = [&](std::uint64_t number) {
    return blocks.get({0, number}, [&](mr::detail::token_blocks::bytes& to) {
      ++reads;
      to.assign(10, static_cast<std::byte>(number));
    });
  };
  const auto first = get(1);
  CHECK((*get(1))[0] == std::byte{1});
  CHECK(reads == 1);
  get(2);
  get(1);
  get(3);   // drops 2
  CHECK(blocks.has({0, 1}));
  CHECK(!blocks.has({0, 2}));
  CHECK(reads == 3);
  get(2);
  CHECK(reads == 4);
  CHECK((*first)[9] == std::byte{1});
  CHECK_THROWS_AS(blocks.get({0, 9}, [](auto&) { throw mr::io_error("no", "no"); }), mr::io_error);
  CHECK(!blocks.has({0, 9}));
}
