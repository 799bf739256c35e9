// Runs over chosen samples: exact passes, ranks, resume and digests as over a complete data set.
#include "indexed_runs.hpp"

#include <map>
#include <set>

namespace mr = millrace;
using namespace indexed_runs;

namespace {

bool is_chosen(int label) { return label % 4 != 1 && label < 200; }

mr::key_list keys_where(bool are_chosen) {
  std::vector<std::string> keys;
  for (int label = 0; label < samples; ++label)
    if (is_chosen(label) == are_chosen) keys.push_back("k" + std::to_string(label));
  return keys;
}

int label_of(std::string_view key) { return std::stoi(std::string(key.substr(1))); }

const run_options by_list{.source = {.only = keys_where(true)}};
const run_options by_predicate{
    .source = {.where = [](std::string_view key, std::string_view) { return is_chosen(label_of(key)); }}};
const run_options repeated{
    .source = {.repeats = [](std::string_view key, std::string_view) { return std::size_t(label_of(key) % 3); }}};

}  // namespace

TEST_CASE("each epoch has every chosen sample as often as requested, with the draws of a run over all") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  std::map<std::pair<std::uint64_t, int>, double> draws_over_all;
  const delivered all = run(shards, {.drop_last = false});
  for (std::size_t b = 0; b < all.batches.size(); ++b)
    for (const auto& [label, draw] : all.batches[b]) draws_over_all[{all.epochs[b], label}] = draw;
  for (const run_options& choice : {by_list, by_predicate, repeated}) {
    run_options o = choice;
    o.drop_last = false;
    const delivered d = run(shards, o);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::map<int, std::set<double>> draws;
      std::map<int, std::size_t> times;
      for (std::size_t b = 0; b < d.batches.size(); ++b)
        if (d.epochs[b] == epoch)
          for (const auto& [label, draw] : d.batches[b]) {
            ++times[label];
            draws[label].insert(draw);
          }
      for (int label = 0; label < samples; ++label) {
        CAPTURE(label);
        const std::size_t expected = choice.source.repeats ? std::size_t(label % 3) : std::size_t(is_chosen(label));
        REQUIRE(times[label] == expected);
        REQUIRE(draws[label].size() == expected);   // each repeat draws its own numbers
        if (expected > 0) REQUIRE(draws[label].contains(draws_over_all[{epoch, label}]));
      }
    }
  }
}

TEST_CASE("a choice has one order for every number of workers and ranks; another list of the same samples is the same "
          "run") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (run_options o : {by_list, repeated}) {
    o.threads = 0;
    const delivered expected = run(shards, o);
    REQUIRE(expected.batches.size() > 10);
    for (const int threads : {1, 4}) {
      o.threads = threads;
      const delivered d = run(shards, o);
      CHECK(d.batches == expected.batches);
      CHECK(d.positions == expected.positions);
    }
    for (const std::size_t ranks : {2, 3, 6}) {
      CAPTURE(ranks);
      const delivered d = run_all_ranks(shards, o, ranks);
      CHECK(d.batches == expected.batches);
      CHECK(d.positions == expected.positions);
    }
  }
  CHECK(run(shards, by_list).positions == run(shards, by_predicate).positions);
  CHECK(run(shards, {.source = {.without = keys_where(false)}}).positions == run(shards, by_predicate).positions);
}

TEST_CASE("a choice resumes after any batch by another list of the same; another choice is refused by name") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered reference = run(shards, by_list);
  for (std::size_t cut = 0; cut + 1 < reference.batches.size(); cut += 3) {
    run_options o = by_predicate;
    o.resume = reference.positions[cut];
    CHECK(o.resume.size() < 300);
    const delivered rest = run(shards, o);
    CHECK(rest.batches == std::vector(reference.batches.begin() + std::ptrdiff_t(cut) + 1, reference.batches.end()));
    CHECK(rest.positions.back() == reference.positions.back());
  }
  for (run_options other : {run_options{}, repeated}) {
    other.resume = reference.positions[1];
    CHECK_THROWS_WITH_AS(run(shards, other),
                         doctest::Contains("the choice of samples (.having, .only, .without, .where, .repeats) was"),
                         mr::setup_error);
  }
  run_options o = by_list;
  o.resume = run(shards, {.max_batches = 2}).positions[1];
  CHECK_THROWS_WITH_AS(run(shards, o), doctest::Contains("was all, each once and is"), mr::setup_error);
}

TEST_CASE("a choice of all samples equals the run over all") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const run_options all{.source = {.where = [](std::string_view, std::string_view) { return true; }}};
  CHECK(run(shards, all).positions == run(shards, {}).positions);
  CHECK(run(shards, by_list).positions.back() != run(shards, {}).positions.back());
}
