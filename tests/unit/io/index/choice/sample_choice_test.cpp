// The choice of a shard's samples, and lists of keys.
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

constexpr std::size_t shards = 3, samples_per_shard = 500;

std::string key_of(std::size_t sample) { return "k" + std::to_string(sample); }

/// Shards in which sample i has the key ki, and as its payload `size` filler bytes followed by its number.
std::vector<std::string> write_shards(const temporary_folder& f, std::size_t size = 100) {
  mr::shard_writer writer({.pattern = f / "s-%d.tar", .max_samples = samples_per_shard});
  for (std::size_t i = 0; i < shards * samples_per_shard; ++i)
    writer.write(key_of(i), {{"txt", std::string(size, 'x') + std::to_string(i)}});
  writer.close();
  std::vector<std::string> names;
  for (std::size_t s = 0; s < shards; ++s) names.push_back(f / ("s-" + std::to_string(s) + ".tar"));
  return names;
}

/// All chosen samples in their order, by number; each is read, and its location requested.
std::vector<std::size_t> chosen_numbers(mr::detail::shard_data& data, std::size_t size = 100) {
  std::vector<std::size_t> numbers;
  for (std::size_t s = 0; s < data.counts().size(); ++s) {
    std::vector<mr::detail::located_sample> positions;
    for (std::uint64_t i = 0; i < data.counts()[s]; ++i) positions.push_back({s, i});
    if (positions.empty()) continue;
    std::vector<mr::record> records(positions.size());
    std::exception_ptr failure;
    REQUIRE(data.read(positions, records, failure) == positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      numbers.push_back(std::stoul(std::string(records[i]["txt"].text().substr(size))));
      REQUIRE(records[i].key() == key_of(numbers.back()));
      REQUIRE(data.location_of(positions[i]).key == key_of(numbers.back()));
    }
  }
  return numbers;
}

std::vector<std::size_t> those(const std::function<std::size_t(std::size_t)>& times) {
  std::vector<std::size_t> all;
  for (std::size_t s = 0; s < shards; ++s)
    for (std::size_t round = 0; round < 10; ++round)
      for (std::size_t i = s * samples_per_shard; i < (s + 1) * samples_per_shard; ++i)
        if (times(i) > round) all.push_back(i);
  return all;
}

mr::key_list keys_of(const std::vector<std::size_t>& samples) {
  std::vector<std::string> keys;
  for (const std::size_t i : samples) keys.push_back(key_of(i));
  return keys;
}

mr::detail::shard_data data_of(const std::vector<std::string>& names, mr::detail::sample_choice choice) {
  return mr::detail::shard_data(names, {.choice = std::move(choice)});
}

}  // namespace

TEST_CASE("a list of keys has each key once, in every shard or in one") {
  const mr::key_list plain = std::vector<std::string>{"b", "a", "b", ""};
  CHECK(plain.size() == 3);
  CHECK(plain.contains("a", "x/s-0.tar"));
  CHECK(plain.contains("", "s"));
  CHECK_FALSE(plain.contains("c", "s"));
  CHECK_FALSE(mr::key_list().contains("", ""));
  CHECK(mr::key_list().empty());
  auto table = std::make_shared<mr::detail::key_table>();
  table->add("a", "folder/s-0.tar");
  table->add("a", "s-0.tar");
  table->add("a", "s-1.tar");
  table->add("b", "s-0.tar");
  table->add("b", {});
  table->sort();
  const mr::key_list bound(std::move(table));
  CHECK(bound.size() == 3);
  CHECK(bound.contains("a", "elsewhere/s-0.tar"));
  CHECK(bound.contains("a", "s-1.tar"));
  CHECK_FALSE(bound.contains("a", "s-2.tar"));
  CHECK(bound.contains("b", "s-2.tar"));
}

TEST_CASE("200,000 keys are found, and no other") {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < 200'000; ++i) keys.push_back("n" + std::to_string(i * 7));
  const mr::key_list list = keys;
  CHECK(list.size() == keys.size());
  std::size_t matches = 0;
  for (std::size_t i = 0; i < 200'000; ++i) matches += list.contains("n" + std::to_string(i), "s.tar");
  CHECK(matches == 28'572);
}

TEST_CASE("only, without, where and repeats choose the same as a loop over all samples") {
  const temporary_folder f;
  const auto names = write_shards(f);
  const auto third = [](std::size_t i) { return i % 3 == 0; };
  const auto choose = [&](mr::detail::sample_choice choice) {
    auto data = data_of(names, std::move(choice));
    return chosen_numbers(data);
  };
  CHECK(choose({}) == those([](std::size_t) { return 1; }));
  CHECK(choose({.only = keys_of(those(third))}) == those(third));
  CHECK(choose({.without = keys_of(those(third))}) == those([&](std::size_t i) { return !third(i); }));
  CHECK(choose({.only = keys_of(those(third)), .without = keys_of({0, 3, 4, 999, 1'499}),
                .where = [](std::string_view key, std::string_view) { return key.size() < 5; }}) ==
        those([&](std::size_t i) { return third(i) && i != 0 && i != 3 && i != 999 && i < 1'000; }));
  CHECK(choose({.where = [](std::string_view, std::string_view shard) { return shard.ends_with("s-1.tar"); }}) ==
        those([](std::size_t i) { return i / samples_per_shard == 1; }));
  const auto often = [](std::size_t i) { return i % 5 == 0 ? i % 7 : i % 2; };
  CHECK(choose({.repeats = [&](std::string_view key, std::string_view) {
          return often(std::stoul(std::string(key.substr(1))));
        }}) == those(often));
}

TEST_CASE("a sample has the same identity in every choice; each repeat has another") {
  const temporary_folder f;
  const auto names = write_shards(f);
  const auto all = data_of(names, {});
  const auto odd =
      data_of(names, {.where = [](std::string_view key, std::string_view) { return key.back() % 2 == 1; }});
  CHECK(odd.id_of({1, 7}) == all.id_of({1, 15}));
  CHECK(all.id_of({1, 15}) == mr::detail::sample_id(1, 15));
  const auto thrice = data_of(names, {.repeats = [](std::string_view, std::string_view) { return 3; }});
  std::set<std::uint64_t> ids;
  for (std::uint64_t s = 0; s < shards; ++s)
    for (std::uint64_t i = 0; i < thrice.counts()[s]; ++i) ids.insert(thrice.id_of({s, i}));
  CHECK(ids.size() == 3 * shards * samples_per_shard);
  CHECK(thrice.id_of({2, 499}) == all.id_of({2, 499}));
  CHECK(thrice.id_of({2, 500}) != all.id_of({2, 0}));
}

TEST_CASE("the checksum is that of the chosen samples, whatever the options") {
  const temporary_folder f;
  const auto names = write_shards(f);
  const auto checksum = [&](mr::detail::sample_choice choice) { return data_of(names, std::move(choice)).choice(); };
  const auto third = [](std::size_t i) { return i % 3 == 0; };
  CHECK(checksum({}) == 0);
  CHECK(checksum({.where = [](std::string_view, std::string_view) { return true; }}) == 0);
  CHECK(checksum({.repeats = [](std::string_view, std::string_view) { return 1; }}) == 0);
  const std::uint64_t by_list = checksum({.only = keys_of(those(third))});
  CHECK(by_list != 0);
  CHECK(checksum({.where = [&](std::string_view key, std::string_view) {
          return third(std::stoul(std::string(key.substr(1))));
        }}) == by_list);
  CHECK(checksum({.without = keys_of(those([&](std::size_t i) { return !third(i); }))}) == by_list);
  std::set<std::uint64_t> others{by_list};
  others.insert(checksum({.without = keys_of({7})}));
  others.insert(checksum({.without = keys_of({8})}));
  others.insert(checksum({.repeats = [](std::string_view key, std::string_view) { return key == "k7" ? 2 : 1; }}));
  others.insert(checksum({.repeats = [](std::string_view key, std::string_view) { return key == "k7" ? 3 : 1; }}));
  CHECK(others.size() == 5);
}

TEST_CASE("unknown keys are reported, and an empty choice is an error") {
  const temporary_folder f;
  const auto names = write_shards(f);
  const auto some = data_of(names, {.only = std::vector<std::string>{"k1", "nowhere"},
                                    .without = std::vector<std::string>{"k2", "K\n1", "K2"}});
  REQUIRE(some.notices().size() == 1);
  const std::string text = some.notices()[0].text;
  CHECK(text.find("1 of the 2 keys of .only: 'nowhere'") != std::string::npos);
  CHECK(text.find("2 of the 3 keys of .without: 'K") != std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(some.choice_text() == "1 of 1500 samples chosen");
  CHECK(data_of(names, {}).choice_text().empty());
  CHECK(data_of(names, {.without = keys_of({7})}).notices().empty());
  CHECK_THROWS_WITH_AS(data_of(names, {.only = mr::key_list()}),
                       doctest::Contains("no sample is chosen: .only, .without, .where or .repeats exclude all 1500"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(data_of(names, {.repeats = [](std::string_view, std::string_view) { return ~std::size_t{0}; }}),
                       doctest::Contains("chosen 2^32 times or more in total"), mr::setup_error);
}

TEST_CASE("unknown keys are shown with those of the shards, and with the defect of the list") {
  const temporary_folder f;
  mr::shard_writer writer({.pattern = f / "d-%d.tar"});
  for (const char* key : {"./img0", "./img1", "./img2", "./img3"}) writer.write(key, {{"cls", "1"}});
  writer.close();
  const auto error_of = [&](const std::string& key) {
    try {
      mr::detail::shard_data data({f / "d-0.tar"}, {.choice = {.only = mr::key_list(std::vector<std::string>{key})}});
    } catch (const mr::setup_error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(error_of("./img1") == "no error");
  const std::pair<const char*, const char*> wrong[] = {
      {"img1", "Begin the keys with ./, as in the shards"},
      {"./img1.jpg", "Write the keys without the extension"},
      {"./img1\r", "not CRLF"},
      {"\xef\xbb\xbf./img1", "without a byte order mark (BOM)"},
      {"./img1 ", "without spaces around the keys"},
      {"./img1,3", "without other columns"},
      {"./other", "examples/inspect --keys shows"}};
  for (const auto& [key, advice] : wrong) {
    const std::string text = error_of(key);
    CHECK(text.find("Keys of the shards are './img0', './img1', './img2', ...") != std::string::npos);
    CHECK(text.find(advice) != std::string::npos);
  }
  mr::shard_writer plain({.pattern = f / "e-%d.tar"});
  plain.write("img0", {{"cls", "1"}});
  plain.close();
  CHECK_THROWS_WITH_AS(mr::detail::shard_data({f / "e-0.tar"},
                                              {.choice = {.only = mr::key_list(std::vector<std::string>{"./img0"})}}),
                       doctest::Contains("Write the keys without ./"), mr::setup_error);
}

TEST_CASE("a choice reads its samples, and little more") {
  const temporary_folder f;
  const auto names = write_shards(f, 60'000);
  const auto hundredth = those([](std::size_t i) { return i % 100 == 50; });
  auto data = data_of(names, {.only = keys_of(hundredth)});
  const auto before = data.reads().snapshot().bytes;
  CHECK(chosen_numbers(data, 60'000) == hundredth);
  const auto read = data.reads().snapshot().bytes - before;
  CHECK(read < 60'000 * hundredth.size() * 11 / 10);
  CHECK(read > 60'000 * hundredth.size());
  // In blocks of small samples the result is the same as one by one, and a sparse choice is not read in blocks.
  const temporary_folder g;
  const auto small = write_shards(g);
  for (const std::size_t step : {1, 3, 100}) {
    const auto expected = those([&](std::size_t i) { return i % step == 0; });
    auto one_by_one = data_of(small, {.only = keys_of(expected)}),
         in_blocks = data_of(small, {.only = keys_of(expected)});
    const bool blocks = in_blocks.expect({.window = 300, .lanes = 1, .max_held_bytes = std::size_t{32} << 20}) > 0;
    CHECK(blocks == (step < 100));
    (void)chosen_numbers(in_blocks);
    CHECK(chosen_numbers(in_blocks) == chosen_numbers(one_by_one));
  }
}
