// Mixed sources without an index: the order equals that of the same sources with an index.
#include "../../io/tar_bytes.hpp"
#include "../../../temporary_folder.hpp"
#include "../../run/quiet_sessions.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/report/verdict/verdict.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/mix.hpp>
#include <millrace/sources/shards.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

namespace mr = millrace;

namespace {

struct example {
  std::int32_t label;
};
using labels = std::vector<std::int32_t>;

example prepare(const mr::record& r) { return {r["cls"].as<std::int32_t>()}; }
example from_int(int label) { return {label}; }

std::string write_shards(const temporary_folder& folder, int first, int samples) {
  mr::shard_writer shards({.pattern = folder / "s-%03d.tar", .max_samples = 7});
  for (int i = first; i < first + samples; ++i) shards.write(std::to_string(i), {{"cls", std::to_string(i)}});
  shards.close();
  return folder.path();
}

/// By epoch.
template <class Flow>
std::vector<labels> run(Flow flow, int threads = 2, std::uint64_t epochs = 3) {
  mr::session session{std::move(flow), quiet(threads, epochs)};
  std::vector<labels> all(epochs);
  for (auto& b : session)
    for (const std::int32_t label : b.template get<&example::label>().host()) all[b.epoch()].push_back(label);
  return all;
}

std::vector<int> numbers_from(int first, int count) {
  std::vector<int> v(static_cast<std::size_t>(count));
  std::iota(v.begin(), v.end(), first);
  return v;
}

constexpr mr::exhausted all_rules[] = {mr::exhausted::stop, mr::exhausted::repeat, mr::exhausted::reweight};

}  // namespace

TEST_CASE("without an index a mix equals one with it, if neither is shuffled") {
  const temporary_folder a, b, c;
  const std::string paths[] = {write_shards(a, 0, 50), write_shards(b, 1'000, 23), write_shards(c, 2'000, 6)};
  using weight = mr::source_weight;
  const std::pair<mr::exhausted, weight> cases[] = {
      {mr::exhausted::stop, 0.3},
      {mr::exhausted::repeat, 0.3},
      {mr::exhausted::reweight, 0.3},
      {mr::exhausted::repeat, weight::steps({{0, 0}, {33, 0.5}})},
      {mr::exhausted::repeat, [](std::uint64_t position) { return position < 256 ? 0.2 : 0; }}};
  for (const auto& one : cases) {
    const auto mixed = [&](auto make) {
      return mr::mix({.seed = 7, .on_exhausted = one.first}, mr::weighted{make(paths[0]), 0.6},
                     mr::weighted{make(paths[1]), one.second}, mr::weighted{make(paths[2]), 0.1}) |
             mr::map(prepare) | mr::batch<&example::label>({.size = 1});
    };
    const auto expected = run(mixed([](const std::string& path) { return mr::shards(path); }));
    for (const int threads : {0, 1, 3}) {
      const auto rows = run(mixed([](const std::string& path) { return mr::shards(path, {.index = mr::index::off}); }),
                             threads);
      CHECK(rows == expected);
    }
  }
}

TEST_CASE("shuffled, each source still delivers each sample once a pass, and the shares are kept") {
  const temporary_folder a, b;
  const std::string first = write_shards(a, 0, 70), second = write_shards(b, 1'000, 30);
  const auto mixed = [&](std::uint64_t seed) {
    return mr::mix({.seed = seed, .on_exhausted = mr::exhausted::reweight},
                   mr::weighted{mr::shards(first, {.index = mr::index::off}) | mr::shuffle({.window = 20}), 0.6},
                   mr::weighted{mr::shards(second, {.index = mr::index::off}) | mr::shuffle({.window = 5}), 0.4}) |
           mr::map(prepare) | mr::batch<&example::label>({.size = 10});
  };
  const auto epochs = run(mixed(7));
  CHECK(run(mixed(7), 0) == epochs);
  CHECK(run(mixed(8)) != epochs);
  for (const labels& epoch : epochs) {
    REQUIRE(epoch.size() == 100);
    CHECK(std::set<std::int32_t>(epoch.begin(), epoch.end()).size() == 100);
    // The second is exhausted at 75: until then every ten positions have six and four of them.
    for (std::size_t at = 0; at < 70; at += 10)
      CHECK(std::count_if(epoch.begin() + static_cast<long>(at), epoch.begin() + static_cast<long>(at) + 10,
                          [](std::int32_t label) { return label < 1'000; }) == 6);
  }
  CHECK(epochs[0] != epochs[1]);
}

TEST_CASE("sources of different kinds are mixed, each through its own maps") {
  const temporary_folder folder;
  const std::string path = write_shards(folder, 0, 12);
  const std::vector<int> range = numbers_from(1'000, 30);
  int next = 2'000;
  const auto generate = [&]() -> std::optional<int> { return next++; };
  mr::session run{mr::mix({.on_exhausted = mr::exhausted::stop},
                          mr::weighted{mr::shards(path, {.index = mr::index::off}) | mr::map(prepare)},
                          mr::weighted{mr::from(range) | mr::shuffle({.window = 4}) | mr::map(from_int)},
                          mr::weighted{mr::from(generate) | mr::map(from_int), 1, "made up"}) |
                      mr::batch<&example::label>({.size = 2, .keys = true}),
                  quiet(2, 1)};
  int at = 0;
  for (auto& b : run)
    for (std::size_t i = 0; i < b.size(); ++i, ++at) {
      const std::int32_t label = b.get<&example::label>()[i];
      CHECK(label / 1'000 == at % 3);
      const char* const source[] = {"", "source 1:", "made up:"};
      CHECK(b.keys()[i] == source[at % 3] + std::to_string(label % 1'000));
    }
  CHECK(at == 34);   // the shards' twelfth sample is the last
}

TEST_CASE("a mix without an index refuses ranks, and says so when a source is empty") {
  const std::vector<int> some = numbers(20), none;
  const auto mixed = [](const std::vector<int>& a, const std::vector<int>& b, mr::exhausted rule) {
    return mr::mix({.on_exhausted = rule}, mr::weighted{mr::from(a) | mr::map(from_int)},
                   mr::weighted{mr::from(b) | mr::map(from_int), 1, "empty"}) |
           mr::batch<&example::label>({.size = 2});
  };
  mr::session_options two = quiet(1);
  two.world = {.rank = 0, .size = 2};
  CHECK_THROWS_WITH_AS((mr::session{mixed(some, some, mr::exhausted::stop), two}),
                       doctest::Contains("or use shards() over plain tars"), mr::setup_error);
  for (const mr::exhausted rule : all_rules)
    CHECK_THROWS_WITH_AS(run(mixed(some, none, rule)), doctest::Contains("empty of the mix has no sample"),
                         mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::mix({}, mr::weighted{mr::from(some), 0.5}, mr::weighted{mr::from(some), -1}),
                       doctest::Contains("an invalid weight: got -1"), mr::setup_error);
}

TEST_CASE("a damaged shard of a mix is an error that names it, after all samples before it") {
  const temporary_folder a, b;
  const std::string first = write_shards(a, 0, 7), second = write_shards(b, 1'000, 7);
  std::filesystem::resize_file(b / "s-000.tar", 5 * 1'024 + 600);   // five samples, and a cut header
  for (const int threads : {0, 2}) {
    mr::session session{mr::mix({}, mr::weighted{mr::shards(first, {.index = mr::index::off})},
                                mr::weighted{mr::shards(second, {.index = mr::index::off})}) |
                            mr::map(prepare) | mr::batch<&example::label>({.size = 1}),
                        quiet(threads)};
    labels delivered;
    try {
      for (auto& batch : session) delivered.push_back(batch.get<&example::label>().host()[0]);
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().shard == b / "s-000.tar");
    }
    CHECK(delivered == labels{0, 1'000, 1, 1'001, 2, 1'002, 3, 1'003, 4, 1'004});
  }
}

TEST_CASE("a compressed mix is limited by unpack, not by I/O") {
  if (!tar_test::have("bzip2")) {
    MESSAGE("skipped: no bzip2");
    return;
  }
  const temporary_folder folders[2];
  std::string paths[2];
  mr::rng random({.seed = 1});
  for (int set = 0; set < 2; ++set) {
    const std::string plain = folders[set] / "s-0.tar";
    mr::shard_writer shard({.pattern = folders[set] / "s-%d.tar"});
    for (int i = 0; i < 12; ++i) {
      std::string payload(std::size_t{200} << 10, '\0');
      for (char& c : payload) c = static_cast<char>('a' + random.below(20));
      shard.write(std::to_string(i), {{"cls", std::to_string(i)}, {"txt", payload}});
    }
    shard.close();
    paths[set] = plain + ".bz2";
    tar_test::save(paths[set], tar_test::through("bzip2 -c", tar_test::load(plain)));
    std::filesystem::remove(plain);
  }
  mr::session session{mr::mix({}, mr::weighted{mr::shards(paths[0], {.index = mr::index::off})},
                              mr::weighted{mr::shards(paths[1], {.index = mr::index::off})}) |
                          mr::map(prepare) | mr::batch<&example::label>({.size = 1}),
                      quiet(1)};
  for (auto& b : session) static_cast<void>(b);
  const mr::flow_statistics f = session.statistics();
  const mr::stage_statistics *const read = f.find(mr::stage_kind::read),
    *const unpack = f.find(mr::stage_kind::unpack);
  REQUIRE(read);
  REQUIRE(unpack);
  CHECK(read->bytes == std::filesystem::file_size(paths[0]) + std::filesystem::file_size(paths[1]));
  CHECK(unpack->busy_ns > 5 * read->busy_ns);
  const mr::verdict v = mr::judge(f);
  CHECK((v.what == mr::bound_by::cpu || v.what == mr::bound_by::cpu_starved));   // starved if other programs compute
  CHECK(v.where == "unpack");
}

TEST_CASE("in a mix, turns of a source that does not report its reads count as reading, in addition to the others' "
          "reads") {
  const temporary_folder folder;
  const std::string path = write_shards(folder, 0, 5);
  const std::vector<int> some = numbers(5);
  const auto files = mr::shards(path, {.index = mr::index::off}).source;
  const auto others = mr::from(some).source;
  const mr::detail::mix_rule rule{.sources = {{}, {}}, .on_exhausted = mr::exhausted::reweight};
  const mr::detail::mix_streams in(rule, 7, files, others);
  auto reader = in.open(0, 0);
  while (reader.next()) {
  }
  const auto reads = in.reads().snapshot();
  CHECK(reads.bytes == std::filesystem::file_size(folder / "s-000.tar") + 5 * sizeof(int));
  CHECK(files.reads().snapshot().bytes == 0);   // those of other runs are separate
  using numbers_source = std::remove_const_t<decltype(others)>;
  CHECK_FALSE(mr::detail::stream_tuple<numbers_source, numbers_source>::watched);
}
