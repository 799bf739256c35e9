// pad_last: the last batch of an epoch is filled up with masked rows, and nothing else changes.
#include "damaged_runs.hpp"

#include <millrace/sources/from.hpp>
#include <millrace/sources/mix.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/expand.hpp>

#include <map>

namespace mr = millrace;
using namespace damaged_runs;

namespace {

struct number {
  std::int32_t n;
};
struct words {
  mr::ragged<std::uint8_t> text;
};

const row_trace padding{0, {}, false, false, ""};

/// Batches with masked rows after the last one of an epoch.
std::vector<batch_trace> padded(std::vector<batch_trace> batches) {
  for (batch_trace& b : batches) b.resize(global_batch, padding);
  return batches;
}

std::uint64_t rows_of(const std::vector<batch_trace>& batches) {
  std::uint64_t rows = 0;
  for (const batch_trace& b : batches) rows += b.size();
  return rows;
}

}  // namespace

TEST_CASE("padded batches are the short ones followed by masked rows, for all ranks, workers and devices") {
  // 288 fills its batches; the others leave 1, 11, 12 and 47 rows, of which ranks get none, one, or unequal shares.
  for (const int count : {288, 289, 299, 300, 335}) {
    CAPTURE(count);
    const temporary_folder folder;
    const std::string shards = write_labels(folder, count);
    const run_trace short_batches = run_with(shards, {.on_damage = {}, .drop_last = false});
    REQUIRE(rows_of(short_batches.batches) == 2 * std::uint64_t(count));
    for (const int threads : {0, 1, 4})
      for (const bool copying : {false, true}) {
        const run_trace d =
            run_with(shards, {.on_damage = {}, .threads = threads, .pad_last = true, .copying = copying});
        CHECK(d.batches == padded(short_batches.batches));
        CHECK(d.positions == short_batches.positions);
        CHECK(d.global_sizes == short_batches.global_sizes);
        CHECK(d.stats.digest == short_batches.stats.digest);
        CHECK(d.stats.samples == 2 * std::uint64_t(count));
        CHECK(d.stats.masked == 0);
      }
    for (const std::size_t ranks : {2, 3, 4, 6, 12})
      for (const int threads : {0, 4}) {
        CAPTURE(ranks);
        const run_trace d = run_on_ranks(
            shards, {.on_damage = {}, .threads = threads, .pad_last = true, .copying = threads > 0}, ranks);
        CHECK(d.batches == padded(short_batches.batches));   // merged from ranks of global_batch / ranks rows each
        CHECK(d.positions == short_batches.positions);
        CHECK(d.global_sizes == short_batches.global_sizes);
        CHECK(d.stats.samples == 2 * std::uint64_t(count));
      }
  }
}

TEST_CASE("each rank has batches of one size, however few samples remain for it, even with none in the entire epoch") {
  for (const int count : {1, 5, 48, 49}) {
    CAPTURE(count);
    const temporary_folder folder;
    const std::string shards = write_labels(folder, count);
    for (const std::size_t ranks : {1, 2, 3, 4, 6, 12}) {
      std::map<std::string, int> counts;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(ranks);
        CAPTURE(rank);
        const run_trace d = run_with(shards, {.on_damage = {}, .threads = rank % 2 == 0 ? 1 : 4,
                                             .world = {.rank = rank, .size = ranks}, .pad_last = true, .epochs = 3});
        REQUIRE(d.batches.size() == 3 * std::size_t(1 + (count - 1) / int(global_batch)));
        for (const batch_trace& b : d.batches) {
          REQUIRE(b.size() == global_batch / ranks);
          for (const row_trace& r : b) {
            if (r.valid) ++counts[r.key];
            else REQUIRE(r == padding);
          }
        }
      }
      REQUIRE(counts.size() == std::size_t(count));
      for (const auto& [key, times] : counts) REQUIRE(times == 3);   // once in each epoch
    }
  }
}

TEST_CASE("a padded run continues before and after its last batch, by any number of ranks") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder, 289);
  const run_trace full = run_with(shards, {.on_damage = {}, .pad_last = true});
  REQUIRE(full.batches.size() == 14);
  REQUIRE(full.positions == run_with(shards, {.on_damage = {}, .drop_last = false}).positions);
  for (const std::size_t cut : {4U, 5U, 6U, 12U})   // batch 6 of 0 .. 6 has one row
    for (const std::size_t ranks : {1, 3, 12}) {
      CAPTURE(cut);
      CAPTURE(ranks);
      const run_trace d = run_on_ranks(
          shards, {.on_damage = {}, .resume = full.positions[cut], .pad_last = true, .copying = ranks == 3}, ranks);
      REQUIRE(d.batches.size() == 13 - cut);
      CHECK(std::equal(d.batches.begin(), d.batches.end(), full.batches.begin() + std::ptrdiff_t(cut) + 1));
      CHECK(std::equal(d.positions.begin(), d.positions.end(), full.positions.begin() + std::ptrdiff_t(cut) + 1));
    }
  CHECK(message_of([&] { run_with(shards, {.on_damage = {}, .resume = full.positions[3]}); }) != "no error");
}

TEST_CASE("padding and damage together: damaged rows are among those of samples, and padding copies nothing") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder, 299);
  for (const auto policy : {mr::damage::replace, mr::damage::mask})
    for (const int threads : {0, 4}) {
      damaged_run o{.bad = every(7), .on_damage = {.policy = policy, .at_most_share = 1}, .threads = threads,
                    .drop_last = false};
      const run_trace brief = run_with(shards, o);
      o.pad_last = true;
      for (const std::size_t ranks : {1, 2, 6, 12}) {
        const run_trace d = run_on_ranks(shards, o, ranks);
        CHECK(d.batches == padded(brief.batches));
        CHECK(d.positions == brief.positions);
        CHECK(d.stats.masked == brief.stats.masked);
        CHECK(d.stats.replaced == brief.stats.replaced);
        CHECK(d.stats.samples == brief.stats.samples);
      }
    }
  // All of the last batch is damaged: its samples are counted, the padding after it is not.
  const temporary_folder few;
  damaged_run o{.bad = {48}, .on_damage = {.policy = mr::damage::mask, .at_most_share = 1}, .pad_last = true,
                .epochs = 1};
  const std::string one_more = write_labels(few, 49);
  o.bad = {run_with(one_more, {.on_damage = {}, .drop_last = false, .epochs = 1}).batches[1][0].label};
  const run_trace d = run_with(one_more, o);
  CHECK(d.stats.masked == 1);
  CHECK(d.batches[1][0].key == "k" + std::to_string(*o.bad.begin()));
  CHECK(d.batches[1][1] == padding);
}

TEST_CASE("a slot with old rows is cleared: each epoch's padding is zeros and empty keys") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder, 60);
  for (const bool copying : {false, true}) {
    const run_trace d = run_with(shards, {.on_damage = {}, .pad_last = true, .copying = copying, .epochs = 20});
    REQUIRE(d.batches.size() == 40);
    for (std::size_t b = 1; b < 40; b += 2)
      for (std::size_t row = 12; row < global_batch; ++row) REQUIRE(d.batches[b][row] == padding);
  }
}

TEST_CASE("a mix is padded like a single data set") {
  const temporary_folder many, few;
  const std::string a = write_labels(many, 100), b = write_labels(few, 31);
  const auto run = [&](const mr::world& mine, bool pad) {
    auto options = quiet(2, 2);
    options.world = mine;
    mr::session session{mr::mix({.seed = 1, .on_exhausted = mr::exhausted::reweight},
                                mr::weighted{mr::shards(a), 0.7}, mr::weighted{mr::shards(b), 0.3}) |
                            mr::map([](const mr::record& r) { return number{r["cls"].as<std::int32_t>()}; }) |
                            mr::batch<&number::n>({.size = 24 / mine.size, .drop_last = false, .pad_last = pad}),
                        options};
    std::vector<std::vector<std::int32_t>> batches;   // -1: a masked row
    for (auto& batch : session) {
      auto& rows = batches.emplace_back();
      const auto numbers = batch.template get<&number::n>();
      for (std::size_t i = 0; i < batch.size(); ++i) rows.push_back(pad && batch.valid()[i] == 0 ? -1 : numbers[i]);
    }
    return batches;
  };
  auto full = run({}, false);
  REQUIRE(full.size() == 12);
  REQUIRE(full[5].size() == 11);   // 131 of 6 x 24
  for (auto& batch : full) batch.resize(24, -1);
  for (const std::size_t ranks : {1, 2, 4, 12}) {
    std::vector<std::vector<std::int32_t>> all(12, std::vector<std::int32_t>(24, -2));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto batches = run({.rank = rank, .size = ranks}, true);
      REQUIRE(batches.size() == 12);
      for (std::size_t i = 0; i < 12; ++i) {
        REQUIRE(batches[i].size() == 24 / ranks);
        for (std::size_t row = 0; row < batches[i].size(); ++row) all[i][row * ranks + rank] = batches[i][row];
      }
    }
    CHECK(all == full);
  }
}

TEST_CASE("without an index one rank pads too, after any stage, and resumes") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder, 101);
  const auto run = [&](int threads, bool pad, const std::string& resume) {
    auto options = quiet(threads, 2);
    options.resume = resume;
    mr::session session{
        mr::shards(shards, {.seed = 3, .index = mr::index::off}) | mr::shuffle({.window = 20}) |
            mr::map([](const mr::record& r) { return number{r["cls"].as<std::int32_t>()}; }) |
            mr::filter([](const number& x) { return x.n % 3 != 0; }) |
            mr::batch<&number::n>({.size = 8, .drop_last = false, .pad_last = pad, .keys = true}),
        options};
    run_trace trace;
    for (auto& b : session) {
      auto& rows = trace.batches.emplace_back();
      for (std::size_t i = 0; i < b.size(); ++i) {
        const bool valid = !pad || b.valid()[i] == 1;
        rows.push_back({b.template get<&number::n>()[i], {}, valid, false, std::string(b.keys()[i])});
      }
      trace.positions.push_back(mr::to_text(b.position()));
      trace.global_sizes.push_back(b.global_size());
    }
    trace.stats = session.stats();
    return trace;
  };
  const run_trace brief = run(0, false, "");
  REQUIRE(brief.batches[8].size() == 3);   // 67 of 101
  for (const int threads : {0, 1, 4}) {
    const run_trace d = run(threads, true, "");
    REQUIRE(d.batches.size() == brief.batches.size());
    for (std::size_t b = 0; b < d.batches.size(); ++b) {
      batch_trace expected = brief.batches[b];
      expected.resize(8, padding);
      CHECK(d.batches[b] == expected);
    }
    CHECK(d.positions == brief.positions);
    CHECK(d.global_sizes == brief.global_sizes);
    CHECK(d.stats.samples == 134);
    for (const std::size_t cut : {7U, 8U, 16U}) {
      const run_trace rest = run(threads, true, d.positions[cut]);
      CHECK(std::equal(rest.batches.begin(), rest.batches.end(), d.batches.begin() + std::ptrdiff_t(cut) + 1,
                       d.batches.end()));
    }
  }
}

TEST_CASE("pad_last is not allowed after bucket, and valid() reports its requirements") {
  const auto flow = mr::from(numbers(10)) | mr::map([](int n) {
                      std::vector<std::uint8_t> text(std::size_t(n) + 1);
                      return words{mr::ragged<std::uint8_t>(std::move(text), {.max_length = 16})};
                    }) |
                    mr::bucket<&words::text>({.boundaries = {8, 16}, .tokens = 64});
  CHECK(message_of([&] { mr::session{flow | mr::batch<&words::text>({.size = 4, .pad_last = true}), quiet(0)}; })
            .find("got batch({.pad_last = true}), expected batch({.pad_last = false})") != std::string::npos);
  mr::session session{flow | mr::batch<&words::text>({.size = 4}), quiet(0)};
  CHECK(message_of([&] { static_cast<void>(session.next().valid()); })
      .find(".pad_last of batch()") != std::string::npos);
}
