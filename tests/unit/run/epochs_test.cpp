// Kinds of epochs over an index: an exact pass with or without its short last batch, N batches, endless.
#include "indexed_runs.hpp"
#include "../tune/restless_concurrency.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace mr = millrace;
using namespace indexed_runs;

namespace {

bool is_end_of(const delivered& rest, const delivered& full) {
  const auto ends = [](const auto& of, const auto& in) {
    return of.size() <= in.size() && std::equal(of.rbegin(), of.rend(), in.rbegin());
  };
  return ends(rest.batches, full.batches) && ends(rest.positions, full.positions) && ends(rest.steps, full.steps) &&
         ends(rest.epochs, full.epochs);
}

}  // namespace

TEST_CASE("an exact pass with its short last batch delivers each sample once") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered d = run(shards, {.drop_last = false});
  REQUIRE(d.batches.size() == 27);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::int32_t> labels;
    for (std::size_t b = 0; b < 9; ++b) {
      CHECK(d.batches[9 * epoch + b].size() == (b < 8 ? 24 : 19));
      for (const auto& [label, draw] : d.batches[9 * epoch + b]) labels.insert(label);
    }
    CHECK(labels.size() == samples);
  }
  CHECK(d.stats.dropped_last == 0);
}

TEST_CASE("epochs of N batches are passes end to end, and each sample draws other numbers in each") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const std::size_t window : {std::size_t{1}, std::size_t{60}}) {
    const rows passes = run(shards, {.epochs = 6, .window = window, .drop_last = false}).all_rows();
    CHECK(std::set(passes.begin(), passes.end()).size() == passes.size());   // by label and number drawn
    for (const std::uint64_t epoch_batches : some<std::uint64_t>(2, {5, 1, 9, 20, mr::endless})) {
      CAPTURE(epoch_batches);
      const std::uint64_t epochs = epoch_batches == mr::endless ? 1 : 45 / epoch_batches;
      const run_options o{.epochs = epochs, .epoch_batches = epoch_batches, .threads = 1, .window = window,
                          .max_batches = 45};
      const delivered d = run(shards, o);
      REQUIRE(d.batches.size() == std::min<std::uint64_t>(45, epochs * epoch_batches));
      const rows all = d.all_rows();
      CHECK(std::equal(all.begin(), all.end(), passes.begin()));
      for (std::size_t b = 0; b < d.batches.size(); ++b) {
        CHECK(d.batches[b].size() == 24);
        CHECK(d.epochs[b] == b / epoch_batches);
        CHECK(d.steps[b] == b);
      }
      for (const std::size_t ranks : some(2, {2U, 3U, 12U})) {
        const delivered joined = run_all_ranks(shards, o, ranks);
        CHECK(joined.batches == d.batches);
        CHECK(joined.positions == d.positions);
      }
      // The boundaries of epochs do not cause dropped or short batches.
      run_options short_last = o;
      short_last.drop_last = false;
      CHECK(run(shards, short_last).batches == d.batches);
    }
  }
}

TEST_CASE("workers that are opened and closed after each batch change neither order, draws, positions nor digest") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered still = run(shards, {.epochs = 12, .threads = 1});
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto tuning = std::make_shared<restless_concurrency>(seed);
    const delivered d = run(shards, {.epochs = 12, .copying = seed % 2 == 1, .tuning = tuning});
    CHECK(d.batches == still.batches);
    CHECK(d.positions == still.positions);   // digests are in them
    CHECK(d.stats.digest == still.stats.digest);
  }
}

TEST_CASE("an exception of a tuning rule leaves next(), and no batch is lost") {
  struct rule final : mr::tuning_rule {
    struct tuner final : mr::detail::autotuner {
      bool due(std::uint64_t batches) const noexcept override { return batches % 5 == 0 && batches > last; }
      mr::detail::concurrency_counts evaluate(const mr::flow_statistics& f) override {
        last = f.batches;
        throw std::runtime_error("no workers");
      }
      std::uint64_t last = 0;
    };
    mr::detail::concurrency_counts max(const mr::detail::concurrency_counts& now) const override { return now; }
    mr::detail::owner<mr::detail::autotuner> start(const mr::detail::concurrency_limits&) const override {
      return std::make_unique<tuner>();
    }
  };
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered expected = run(shards, {});
  auto options = quiet(2, 3);
  options.tuning = std::make_shared<rule>();
  mr::session session{flow(shards, {}), options};
  std::vector<std::uint64_t> steps;
  std::size_t errors = 0;
  for (bool more = true; more;) try {
      if (auto b = session.next()) steps.push_back(b.step());
      else more = false;
    } catch (const std::runtime_error& e) {
      errors += std::string(e.what()) == "no workers";
    }
  CHECK(steps == expected.steps);
  CHECK(errors == 4);   // of 24 batches
  CHECK(session.stats().digest == expected.stats.digest);
}

TEST_CASE("epoch by epoch, an epoch of N batches ends at its boundary") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  auto options = quiet(2, 4);
  options.epoch_batches = 10;
  mr::session session{flow(shards, {}), options};
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::size_t batches = 0;
    for (auto& b : session.epoch(epoch)) batches += b.epoch() == epoch;
    CHECK(batches == 10);
  }
}

TEST_CASE("resumed after any batch of any kind of epoch, over several passes, the rest and its digest are the same") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const std::size_t window : {std::size_t{60}, std::size_t{5'000}})
    for (run_options o : {run_options{.epochs = 5, .epoch_batches = 7}, run_options{.epochs = 2, .epoch_batches = 20},
                          run_options{.epochs = 1, .epoch_batches = mr::endless, .max_batches = 32},
                          run_options{.epochs = 3, .drop_last = false}}) {
      o.window = window;
      const delivered full = run(shards, o);
      for (std::size_t cut = 0; cut + 1 < full.batches.size(); cut += stride(5)) {
        CAPTURE(o.epoch_batches);
        CAPTURE(cut);
        run_options resumed = o;
        resumed.threads = static_cast<int>(cut % 3);
        resumed.resume = full.positions[cut];
        if (o.epoch_batches == mr::endless) resumed.max_batches = o.max_batches - cut - 1;
        const delivered rest = run(shards, resumed);
        REQUIRE(rest.batches.size() == full.batches.size() - cut - 1);
        REQUIRE(is_end_of(rest, full));
      }
    }
}

TEST_CASE("an epoch of another length is refused by name, and so is any epoch after an endless one") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto position = [&](std::uint64_t epoch_batches) {
    return run(shards, {.epochs = 1, .epoch_batches = epoch_batches, .max_batches = 3}).positions.back();
  };
  const auto resumed = [&](std::uint64_t before, std::uint64_t now) {
    return [&shards, text = position(before), now] {
      run(shards, {.epochs = 1, .epoch_batches = now, .resume = text});
    };
  };
  CHECK_THROWS_WITH_AS(resumed(5, 6)(), doctest::Contains("an epoch was 5 batches and is 6 batches"), mr::setup_error);
  CHECK_THROWS_WITH_AS(resumed(5, 0)(), doctest::Contains("an epoch was 5 batches and is one pass"), mr::setup_error);
  CHECK_THROWS_WITH_AS(resumed(0, mr::endless)(), doctest::Contains("without a short last batch and is endless"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(run(shards, {.epochs = 2, .epoch_batches = mr::endless}),
                       doctest::Contains("epoch_batches = endless allows one epoch"), mr::setup_error);
  mr::position far = mr::parse_position(position(mr::endless));
  far.next_position = ~std::uint64_t{0} / 24 * 24;
  CHECK_THROWS_AS(run(shards, {.epochs = 1, .epoch_batches = mr::endless, .resume = mr::to_text(far)}), mr::data_error);
  far.next_position = 24;
  far.epoch = ~std::uint64_t{0};
  CHECK_THROWS_AS(run(shards, {.epochs = 1, .epoch_batches = mr::endless, .resume = mr::to_text(far)}),
                  mr::setup_error);
}

TEST_CASE("a short last batch is cut evenly: every rank has the same batches, some with fewer rows or none") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  // 211 samples leave 1, 3, 7 and 19 rows over.
  for (const std::size_t global_batch : some(2, {12U, 6U, 24U, 216U, 210U})) {
    const delivered full = run(shards, {.global_batch = global_batch, .drop_last = false});
    CHECK(full.all_rows().size() == 3 * samples);
    for (const std::size_t ranks : {2U, 3U, 4U, 6U}) {
      if (global_batch % ranks != 0) continue;
      for (const bool copying : {false, true}) {
        CAPTURE(global_batch);
        CAPTURE(ranks);
        const delivered d = run_all_ranks(
            shards, {.threads = copying ? 2 : 0, .global_batch = global_batch, .drop_last = false, .allow_empty = true,
                     .copying = copying},
            ranks);
        CHECK(d.batches == full.batches);
        CHECK(d.positions == full.positions);
      }
    }
  }
}

TEST_CASE("a last batch with fewer rows than ranks is refused on every rank, unless it is allowed") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  // 211 samples leave 1 and 3 rows over.
  for (const std::size_t global_batch : {12U, 210U, 216U}) {
    const std::size_t last = samples % global_batch;
    for (const std::size_t ranks : {1U, 2U, 3U, 6U}) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(global_batch);
        CAPTURE(ranks);
        const run_options o{.epochs = 1, .world = {.rank = rank, .size = ranks}, .threads = 0,
                            .global_batch = global_batch, .drop_last = false};
        std::string message = "no error";
        try {
          run(shards, o);
        } catch (const mr::setup_error& e) {
          message = e.what();
        }
        if (last >= ranks) {
          CHECK(message == "no error");
          continue;
        }
        const std::string expected = "the last batch of an epoch leaves ranks without a row: got 1 row for " +
                                     std::to_string(ranks) + " ranks, expected at least one for each (211 samples in "
                                     "batches of 210 rows over all ranks)";
        CHECK(message.find(expected) != std::string::npos);
        CHECK(message.find(".allow_empty = true") != std::string::npos);
        for (const bool drop_last : {true, false}) {
          run_options allowed = o;
          allowed.drop_last = drop_last;
          allowed.allow_empty = !drop_last;
          if (!drop_last || global_batch < samples) CHECK_NOTHROW(run(shards, allowed));
        }
      }
    }
  }
  // Epochs of a number of batches have no short one.
  CHECK_NOTHROW(run(shards, {.epochs = 2, .epoch_batches = 3, .world = {.rank = 3, .size = 6}, .global_batch = 210,
                             .drop_last = false}));
}

TEST_CASE("a rank without a row in the first batch after a resume still has that batch, and the right shapes after "
          "it") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const int threads : {0, 2}) {
    const run_options o{.epochs = 2, .threads = threads, .global_batch = 210, .drop_last = false, .allow_empty = true};
    const delivered full = run(shards, o);
    REQUIRE(full.batches.size() == 4);
    for (std::size_t cut = 0; cut < 3; ++cut) {
      run_options resumed = o;
      resumed.resume = full.positions[cut];
      for (const std::size_t ranks : {2U, 6U}) CHECK(is_end_of(run_all_ranks(shards, resumed, ranks), full));
    }
  }
}

TEST_CASE("fewer samples than ranks") {
  const temporary_folder folder;
  mr::shard_writer shard({.pattern = folder / "few-%d.tar"});
  for (const std::string label : {"0", "1"}) shard.write("k" + label, {{"cls", label}});
  shard.close();
  const run_options o{.window = 1, .global_batch = 8, .drop_last = false, .allow_empty = true};
  const delivered full = run(folder.path(), o);
  CHECK(full.batches.size() == 3);
  for (const std::size_t ranks : {2U, 4U, 8U}) CHECK(run_all_ranks(folder.path(), o, ranks).batches == full.batches);
  CHECK(run_all_ranks(folder.path(), o, 4).positions == full.positions);
  // Nor does a batch have to fit into one pass.
  const rows passes = run(folder.path(), {.epochs = 24, .window = 1, .global_batch = 2}).all_rows();
  const run_options several{.epochs = 2, .epoch_batches = 3, .window = 1, .global_batch = 8};
  for (const std::size_t ranks : {1U, 4U, 8U}) CHECK(run_all_ranks(folder.path(), several, ranks).all_rows() == passes);
}

TEST_CASE("the digest equals that of the samples that explain() and the shards report at each position") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered d = run(shards, {.epochs = 2});
  mr::session session{flow(shards, {}), quiet(0, 2)};
  const std::vector<std::string> names = mr::list_shards(shards);
  std::map<std::string, std::uint64_t> first_label;   // of each shard
  for (int i = 0; i < samples; ++i) {
    const int first = i < 40 ? 0 : i < 41 ? 40 : i < 131 ? 41 : 131;
    first_label["k" + std::to_string(i)] = static_cast<std::uint64_t>(first);
  }
  mr::detail::stream_digest expected;
  for (std::size_t b = 0; b < d.batches.size(); ++b) {
    for (std::uint64_t p = b % 8 * 24; p < (b % 8 + 1) * 24; ++p) {
      const mr::error_location s = session.locate(b / 8, p);
      const std::string text = s.key.substr(1);   // the payload
      const auto shard = static_cast<std::uint64_t>(std::find(names.begin(), names.end(), s.shard) - names.begin());
      const std::uint64_t id = mr::detail::sample_id(shard, std::stoull(text) - first_label[s.key]);
      const std::uint32_t crc = mr::crc32c(std::as_bytes(std::span(text)));
      expected.add(mr::detail::combine_keys(mr::detail::combine_keys(0, b / 8), p),
                   mr::detail::combine_keys(id, mr::detail::combine_keys(0, crc)));
    }
    REQUIRE(mr::parse_position(d.positions[b]).digest == expected.value());
  }
}

TEST_CASE("another payload, with everything else the same, leads to another digest") {
  const auto digest_of = [](const char* payload_of_b) {
    const temporary_folder folder;
    mr::shard_writer shard({.pattern = folder / "one-%d.tar"});
    shard.write("a", {{"cls", "1"}});
    shard.write("b", {{"cls", payload_of_b}});
    shard.close();
    return run(folder.path(), {.epochs = 1, .global_batch = 2, .keys = false}).stats.digest;
  };
  CHECK(digest_of("2") == digest_of("2"));
  CHECK(digest_of("2") != digest_of("3"));
}
