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
  const auto limit = std::make_shared<mr::detail::open_file_limit>(2);
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
  for (const auto& set : all) set->share(limit);
  for (int round = 0; round < 2; ++round)
    for (const auto& set : all) {
      read(*set);
      CHECK(limit->open <= 2);
      CHECK(open_files() <= before + 2);
    }
  CHECK(limit->open == 2);
  all.clear();
  CHECK(limit->open == 0);
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
