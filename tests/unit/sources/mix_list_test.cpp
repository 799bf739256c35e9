// Mixes of a vector of sources: the same as the sources one by one, and hundreds of sources.
#include "mixed_sets.hpp"

#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <thread>

namespace mr = millrace;
using namespace mixed_sets;

namespace {

constexpr mr::exhausted all_rules[] = {mr::exhausted::stop, mr::exhausted::repeat, mr::exhausted::reweight};

/// The flow of mixed_sets.hpp, from a vector.
auto listed(const data_sets& sets, const run_options& o) {
  const auto source = [&](int set, std::size_t window, const mr::source_weight& weight, const std::string& name) {
    return mr::weighted{mr::shards(sets.paths[set], {.seed = o.own_seed, .fields = {"cls"}}) |
                            mr::shuffle({.window = window}),
                        weight, name};
  };
  std::vector all{source(0, o.window, 0.6, "many"), source(1, 25, o.weight, ""), source(2, 9, 0.1, "")};
  return mr::mix({.seed = o.seed, .on_exhausted = o.on_exhausted}, std::move(all)) | mr::map(prepare) |
         mr::batch<&example::label, &example::draw>({.size = global_batch / o.world.size});
}

/// Shards of 3 to 9 samples each, one source each; labels are 100 times the number of the source and more.
struct many_sets {
  explicit many_sets(int count) {
    for (int set = 0; set < count; ++set) {
      mr::shard_writer shard({.pattern = folder / (std::to_string(set) + "-%d.tar")});
      for (int i = 0; i < samples(set); ++i) shard.write(std::to_string(i), {{"cls", std::to_string(100 * set + i)}});
      shard.close();
      names.push_back(folder / (std::to_string(set) + "-0.tar"));
    }
  }
  static int samples(int set) { return 3 + set % 7; }
  static double weight(int set) { return 1 + set % 7 * 0.37; }

  temporary_folder folder;
  std::vector<std::string> names;
};

auto mix_of(const many_sets& sets, mr::exhausted rule, double first_weight = many_sets::weight(0)) {
  const auto one = [&](int set) {
    // Each map knows its source.
    return mr::weighted{mr::shards(sets.names[static_cast<std::size_t>(set)]) | mr::shuffle({.window = 4}) |
                            mr::map([set](const mr::record& r, mr::rng& random) {
                              const auto label = r["cls"].as<std::int32_t>();
                              if (label / 100 != set) throw mr::data_error("the map of another source", "Repair it");
                              return example{label, random.uniform()};
                            }),
                        set == 0 ? first_weight : many_sets::weight(set)};
  };
  std::vector<decltype(one(0))> all;
  for (int set = 0; set < static_cast<int>(sets.names.size()); ++set) all.push_back(one(set));
  return mr::mix({.seed = 7, .on_exhausted = rule}, std::move(all));
}

/// The flow of a run; copies of a mix share the indexes of its sources.
auto batched(const auto& mix, const run_options& o) {
  return mix | mr::batch<&example::label, &example::draw>({.size = global_batch / o.world.size});
}

}  // namespace

TEST_CASE("a mix of a vector equals the mix of its elements") {
  const data_sets sets;
  for (const mr::exhausted rule : all_rules) {
    const run_options o{.on_exhausted = rule};
    const delivered expected = run(sets, o), all = run_flow(listed(sets, o), o);
    CHECK(all.batches == expected.batches);
    CHECK(all.positions == expected.positions);   // resume points of one continue the other
    CHECK(all.description == expected.description);
    CHECK(all.stats.sources[0].name == "many");
  }
  const run_options o{.weight = mr::source_weight::linear({{0, 0}, {500, 3}}), .epoch_batches = 20};
  CHECK(run_flow(listed(sets, o), o).positions == run(sets, o).positions);
}

TEST_CASE("a mix of seventy sources: exact shares, workers, ranks and resumes") {
  const many_sets sets(70);
  const std::uint64_t digests[] = {11294083281062950114U, 17468184136470534320U, 9941923383670801260U};
  mr::rng random({.seed = 3});
  for (const mr::exhausted rule : all_rules) {
    CAPTURE(static_cast<int>(rule));
    const auto make = [mix = mix_of(sets, rule)](const run_options& o) { return batched(mix, o); };
    const run_options base{.epochs = 2, .on_exhausted = rule};
    const delivered full = run_flow(make(base), base);
    CHECK(full.stats.digest == digests[static_cast<int>(rule)]);
    for (const int threads : {0, 4}) {
      run_options o = base;
      o.threads = threads;
      CHECK(run_flow(make(o), o).batches == full.batches);
    }
    for (const std::size_t n : {2, 3, 4, 6})
      if (n == 3 || rule == mr::exhausted::repeat) CHECK(run_all_ranks(make, base, n) == full.batches);
    for (int i = 0; i < (rule == mr::exhausted::repeat ? 50 : 5); ++i) {
      const std::size_t cut = random.below(full.batches.size() - 1);
      run_options o = base;
      o.resume = full.positions[cut];
      o.max_batches = 1 + random.below(3);
      const auto rest = run_all_ranks(make, o, i % 10 == 0 ? 3 : 1);
      REQUIRE(std::equal(rest.begin(), rest.end(), full.batches.begin() + static_cast<long>(cut) + 1));
    }
    std::map<std::int32_t, std::size_t> times;
    std::vector<double> expected(70, 0);
    std::vector<std::uint64_t> counts(70, 0);
    double all = 0;
    for (int set = 0; set < 70; ++set) all += many_sets::weight(set);
    std::size_t deviations = 0;
    bool is_over = false;
    for (std::size_t b = 0; b < full.batches.size() && full.epochs[b] == 0; ++b)
      for (const auto& [label, draw] : full.batches[b]) {
        const auto set = static_cast<std::size_t>(label / 100);
        ++times[label];
        ++counts[set];
        for (std::size_t i = 0; i < 70; ++i) {
          expected[i] += many_sets::weight(static_cast<int>(i)) / all;
          if (!is_over && std::fabs(expected[i] - static_cast<double>(counts[i])) >= 2) ++deviations;
        }
        // With reweight, the shares change where the first source runs out.
        is_over = is_over || (rule == mr::exhausted::reweight && counts[set] == 3 + set % 7);
      }
    CHECK(deviations == 0);
    std::size_t most = 0;
    for (const auto& [label, count] : times) most = std::max(most, count);
    if (rule == mr::exhausted::repeat) CHECK(times.size() == 420);   // each sample at least once
    else CHECK(most == 1);
    if (rule == mr::exhausted::reweight) CHECK(times.size() == 420 / global_batch * global_batch);
    std::vector<std::uint64_t> delivered_counts(70, 0);
    for (const rows& batch : full.batches)
      for (const auto& [label, draw] : batch) ++delivered_counts[static_cast<std::size_t>(label / 100)];
    for (std::size_t i = 0; i < 70; ++i) CHECK(full.stats.sources[i].samples == delivered_counts[i]);
  }
}

TEST_CASE("many sources may have shares below those of a pattern, if they have indexes") {
  const many_sets sets(70);
  const auto repeat = mr::exhausted::repeat;
  const run_options o{.epochs = 1, .epoch_batches = 20};
  const delivered some = run_flow(batched(mix_of(sets, repeat, 1e-6), o), o);
  CHECK(some.batches.size() == 20);
  CHECK(some.stats.sources[0].samples == 0);
  CHECK(some.stats.sources[1].samples > 0);
  CHECK_THROWS_WITH_AS(mix_of(sets, repeat, 0), doctest::Contains("an invalid weight: got 0.0"), mr::setup_error);
  const std::vector<int> numbers(9, 1);
  std::vector streams(70, mr::weighted{mr::from(numbers) | mr::map([](int n) { return example{n, 0}; })});
  streams[0].weight = 1e-6;
  const auto start = [&] {
    mr::session session{batched(mr::mix({}, streams), o), quiet(1, 1)};
    session.next();
  };
  CHECK_THROWS_WITH_AS(start(), doctest::Contains("share of less than 1 / 65536"), mr::setup_error);
}

TEST_CASE("functions of the user are called by the thread that constructs the session") {
  const many_sets sets(70);
  const auto caller = std::this_thread::get_id();
  std::atomic<std::size_t> calls = 0, others = 0;
  const auto is_used = [&](std::string_view, std::string_view) {
    ++(std::this_thread::get_id() == caller ? calls : others);
    return true;
  };
  const auto one = [&](const std::string& name) {
    return mr::weighted{mr::shards(name, {.where = is_used}) | mr::map(prepare)};
  };
  std::vector<decltype(one(""))> all;
  for (const std::string& name : sets.names) all.push_back(one(name));
  const run_options o{.epochs = 1, .max_batches = 1};
  CHECK(run_flow(batched(mr::mix({}, std::move(all)), o), o).batches.size() == 1);
  CHECK(calls == 420);
  CHECK(others == 0);
}

TEST_CASE("the sets of a mix together keep a limited number of files open") {
  const many_sets sets(6);
  const auto shared = std::make_shared<mr::detail::shared_reads>(2);
  std::vector<std::unique_ptr<mr::detail::shard_data>> all;
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd"), end;
    return std::distance(files, end);
  };
  for (const std::string& name : sets.names) all.push_back(std::make_unique<mr::detail::shard_data>(std::vector{name}));
  const auto before = open_files();
  const mr::detail::located_sample first{};
  const auto read = [&](mr::detail::shard_data& set) {
    std::vector<mr::record> records(1);
    std::exception_ptr failure;
    REQUIRE(set.read({&first, 1}, records, failure) == 1);
  };
  read(*all[0]);   // open before the limit is shared
  for (const auto& set : all) set->share(shared);
  for (int round = 0; round < 2; ++round)
    for (const auto& set : all) {
      read(*set);
      CHECK(shared->files.size() <= 2);
      CHECK(open_files() <= before + 2);
    }
  CHECK(shared->files.size() == 2);
  all.clear();
  CHECK(shared->files.size() == 0);
}

TEST_CASE("a vector of streamed sources: the same as one by one; a limit; no source") {
  const std::vector<int> ranges[] = {{1, 2, 3, 4, 5}, {101, 102, 103}, {201, 202}};
  const auto number = [](int n) { return example{n, 0}; };
  const auto labels_of = [](auto mixed) {
    mr::session session{std::move(mixed) | mr::batch<&example::label>({.size = 2}), quiet(1, 3)};
    std::vector<std::int32_t> labels;
    for (auto& b : session)
      for (const std::int32_t label : b.template get<&example::label>().host()) labels.push_back(label);
    return labels;
  };
  for (const mr::exhausted rule : all_rules) {
    const auto one = [&](std::size_t i, double weight) {
      return mr::weighted{mr::from(ranges[i]) | mr::shuffle({.window = 3}) | mr::map(number), weight};
    };
    const mr::mix_options options{.seed = 5, .on_exhausted = rule};
    const auto labels = labels_of(mr::mix(options, std::vector{one(0, 2), one(1, 1), one(2, 1)}));
    CHECK(labels == labels_of(mr::mix(options, one(0, 2), one(1, 1), one(2, 1))));
    CHECK(labels.size() > 12);
  }
  const std::vector many(257, mr::weighted{mr::from(ranges[0]) | mr::map(number)});
  CHECK_THROWS_WITH_AS(labels_of(mr::mix({}, many)), doctest::Contains("too many sources: got 257, expected at most"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::mix({}, std::vector(0, many[0])), doctest::Contains("a mix has no sources"),
                       mr::setup_error);
}

namespace {

/// A mix of the second and the third set of mixed_sets.hpp, with the shares 3 and 1, within a mix with the first.
auto nested(const data_sets& sets, const run_options& o, std::uint64_t inner_seed = 0) {
  const auto source = [&](int set, std::size_t window) {
    return mr::shards(sets.paths[set], {.seed = o.own_seed, .fields = {"cls"}}) | mr::shuffle({.window = window});
  };
  const mr::mix_options inner{.seed = inner_seed, .on_exhausted = o.on_exhausted};
  return mr::mix({.seed = o.seed, .on_exhausted = o.on_exhausted},
                 mr::weighted{source(0, o.window), 0.6, "many"},
                 mr::weighted{mr::mix(inner, mr::weighted{source(1, 25), 3}, mr::weighted{source(2, 9), 1}), o.weight});
}
/// The same as a mix of three sources.
auto flat(const data_sets& sets, const run_options& o, const mr::source_weight& second,
          const mr::source_weight& third) {
  const auto source = [&](int set, std::size_t window) {
    return mr::shards(sets.paths[set], {.seed = o.own_seed, .fields = {"cls"}}) | mr::shuffle({.window = window});
  };
  return mr::mix({.seed = o.seed, .on_exhausted = o.on_exhausted}, mr::weighted{source(0, o.window), 0.6, "many"},
                 mr::weighted{source(1, 25), second}, mr::weighted{source(2, 9), third});
}
auto prepared(const auto& mix, const run_options& o) { return batched(mix | mr::map(prepare), o); }

}  // namespace

TEST_CASE("a mix within a mix has the exact order of one mix with the products of the weights") {
  const data_sets sets;
  mr::rng random({.seed = 4});
  for (const mr::exhausted rule : all_rules) {
    CAPTURE(static_cast<int>(rule));
    const run_options o{.epochs = 2, .on_exhausted = rule, .weight = 0.4};
    const delivered expected = run_flow(prepared(flat(sets, o, 0.3, 0.1), o), o);
    const delivered full = run_flow(prepared(nested(sets, o), o), o);
    CHECK(full.batches == expected.batches);
    CHECK(full.positions == expected.positions);
    CHECK(full.description == expected.description);
    CHECK(full.description.find("mix 6 : 3 : 1 of 3 sources") != std::string::npos);
    const auto make = [&](const run_options& own) { return prepared(nested(sets, own), own); };
    for (const std::size_t n : {2, 3, 4, 6}) CHECK(run_all_ranks(make, o, n) == full.batches);
    for (int i = 0; i < (rule == mr::exhausted::repeat ? 50 : 10); ++i) {
      const std::size_t cut = random.below(full.batches.size() - 1);
      run_options rest_of = o;
      rest_of.resume = full.positions[cut];
      const auto rest = run_all_ranks(make, rest_of, i % 3 + 1);
      REQUIRE(std::equal(rest.begin(), rest.end(), full.batches.begin() + static_cast<long>(cut) + 1));
    }
    const auto other = run_flow(prepared(nested(sets, o, 5), o), o);   // the seed of the inner mix
    CHECK(other.batches != full.batches);
    CHECK(other.batches.size() == full.batches.size());
  }
}

TEST_CASE("weights of a mix within a mix are functions of the position of the run") {
  using weight = mr::source_weight;
  const data_sets sets;
  const weight of_mix[] = {weight::linear({{100, 0}, {700, 4}}), weight::steps({{0, 4}, {333, 0}, {555, 1}}),
                           [](std::uint64_t p) { return p / 300 % 2 == 0 ? 0.0 : 2.0; }};
  const weight parts[][2] = {{weight::linear({{100, 0}, {700, 3}}), weight::linear({{100, 0}, {700, 1}})},
                             {weight::steps({{0, 3}, {333, 0}, {555, 0.75}}),
                              weight::steps({{0, 1}, {333, 0}, {555, 0.25}})},
                             {[](std::uint64_t p) { return p / 300 % 2 == 0 ? 0.0 : 1.5; },
                              [](std::uint64_t p) { return p / 300 % 2 == 0 ? 0.0 : 0.5; }}};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    CAPTURE(kind);
    const run_options o{.epochs = 2, .weight = of_mix[kind], .epoch_batches = 30};
    const delivered full = run_flow(prepared(nested(sets, o), o), o);
    CHECK(full.batches == run_flow(prepared(flat(sets, o, parts[kind][0], parts[kind][1]), o), o).batches);
    CHECK(run_all_ranks([&](const run_options& own) { return prepared(nested(sets, own), own); }, o, 3) ==
          full.batches);
    run_options other = o;
    other.resume = full.positions[4];
    other.weight = weight::steps({{0, 1}, {334, 2}});
    CHECK_THROWS_WITH_AS(run_flow(prepared(nested(sets, other), other), other),
                         doctest::Contains("the mix has other settings (weights"), mr::setup_error);
  }
}

TEST_CASE("mixes in mixes of mixes: maps, numbers and names of sources, and a stream") {
  const many_sets sets(7);
  const auto repeat = mr::exhausted::repeat;
  const auto source = [&](std::size_t set) { return mr::weighted{mr::shards(sets.names[set], {.fields = {"cls"}})}; };
  const auto by_number = [](const mr::detail::mixed_record& r) {
    return example{r["cls"].as<std::int32_t>(), static_cast<double>(r.number())};
  };
  const auto two = [&](std::size_t set) { return mr::mix({.on_exhausted = repeat}, source(set), source(set + 1)); };
  // The numbers of all sources, and in each map the numbers within its part.
  const auto all = mr::mix({.on_exhausted = repeat}, source(0), mr::weighted{two(1), 2, "pair"},
                           mr::weighted{mr::mix({.on_exhausted = repeat}, source(3), mr::weighted{two(4), 2}), 3},
                           source(6)) | mr::map(by_number);
  const run_options o{.epochs = 1, .epoch_batches = 10};
  const delivered numbered = run_flow(batched(all, o), o);
  for (const rows& batch : numbered.batches)
    for (const auto& [label, number] : batch) CHECK(label / 100 == static_cast<int>(number));
  REQUIRE(numbered.stats.sources.size() == 7);
  CHECK(numbered.stats.sources[1].name == "pair 0");
  CHECK(numbered.stats.sources[3].name == "source 3");
  for (const auto& s : numbered.stats.sources) CHECK(std::abs(static_cast<int>(s.samples) - 240 / 7) <= 1);

  std::vector parts{mr::weighted{two(0) | mr::map(by_number)}, mr::weighted{two(2) | mr::map(by_number)}};
  const auto deep = mr::mix({.on_exhausted = repeat}, mr::weighted{mr::mix({.on_exhausted = repeat}, parts), 4},
                            mr::weighted{mr::shards(sets.names[4]) | mr::map([](const mr::record& r) {
                                           return example{r["cls"].as<std::int32_t>(), 9};
                                         })});
  for (const rows& batch : run_flow(batched(deep, o), o).batches)
    for (const auto& [label, number] : batch) CHECK(number == (label / 100 == 4 ? 9 : label / 100 % 2));

  CHECK_THROWS_WITH_AS(mr::mix({}, source(0), mr::weighted{two(1)}),
                       doctest::Contains("mix_options::on_exhausted differs between an outer mix"), mr::setup_error);
  const auto streamed = [&](std::size_t set) {
    return mr::weighted{mr::shards(sets.names[set], {.index = mr::index::off, .fields = {"cls"}})};
  };
  const mr::mix_options repeated{.on_exhausted = repeat};
  const auto inner = mr::mix(repeated, streamed(1), streamed(2));
  CHECK(run_flow(prepared(mr::mix(repeated, streamed(0), mr::weighted{inner, 2}), o), o).batches ==
        run_flow(prepared(mr::mix(repeated, std::vector{streamed(0), streamed(1), streamed(2)}), o), o).batches);
}

TEST_CASE("the files that several sets keep open are closed by age, not by set") {
  const many_sets sets(4);
  const auto opens = std::make_shared<std::map<std::string, int>>();
  struct counting {
    std::shared_ptr<std::map<std::string, int>> opens;
    struct file {
      mr::file_source source;
      mr::file_identity identity() const { return {.size_bytes = source.size_bytes()}; }
      std::size_t read_at(std::uint64_t at, std::span<std::byte> to) { return source.read_at(at, to); }
    };
    std::unique_ptr<file> open(const std::string& name) const {
      if (!std::filesystem::exists(name)) return nullptr;
      ++(*opens)[name];
      return std::unique_ptr<file>(new file{mr::file_source(name)});
    }
  };
  const auto shared = std::make_shared<mr::detail::shared_reads>(2);
  const auto set_of_names = [&](const std::vector<std::string>& names) {
    mr::detail::shard_data_options o{};
    o.files.storage = counting{opens};
    o.notice = mr::quiet;
    auto set = std::make_unique<mr::detail::shard_data>(names, std::move(o));
    set->share(shared);
    return set;
  };
  const auto large = set_of_names({sets.names[0], sets.names[1], sets.names[2]}), small = set_of_names({sets.names[3]});
  const auto read = [](mr::detail::shard_data& set, std::size_t shard) {
    const mr::detail::located_sample first{shard, 0};
    std::vector<mr::record> records(1);
    std::exception_ptr failure;
    REQUIRE(set.read({&first, 1}, records, failure) == 1);
  };
  for (const std::size_t shard : {0, 1, 2}) read(*large, shard);   // this set has all files that may be open
  CHECK(shared->files.size() == 2);
  const int before = (*opens)[sets.names[3]];
  for (int i = 0; i < 5; ++i) read(*small, 0);
  CHECK((*opens)[sets.names[3]] == before + 1);
  const int before_large = (*opens)[sets.names[2]];
  read(*large, 2);   // used more recently than the first two
  CHECK((*opens)[sets.names[2]] == before_large);
}
