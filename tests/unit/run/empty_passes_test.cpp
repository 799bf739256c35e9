// Passes in which no sample becomes a row: an error that names the stage, on one rank and on each of several, and never
// a run that reads forever.
#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/pack.hpp>
#include <millrace/stages/take.hpp>

#include "../../eventually.hpp"
#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t n;
};

/// Four shards of 50 numbers; those of the last one are above 149.
std::string write_shards(const temporary_folder& folder) {
  mr::shard_writer out({.pattern = folder / "s-%d.tar", .max_samples = 50});
  for (int i = 0; i < 200; ++i) out.write("k" + std::to_string(i), {{"cls", std::to_string(i)}});
  out.close();
  return folder.path();
}

row number_of(const mr::record& r) { return {r["cls"].as<std::int32_t>()}; }
const auto numbered = mr::map(number_of);

struct drops_all {
  using output = row;
  std::size_t max_outputs(const row&) const { return 1; }
  void push(const row&, auto&) const {}
};
struct holds_all {   // a state, and nothing at the end of a pass
  using output = row;
  std::size_t items = 0;
  std::size_t max_outputs(const row&) const { return 1; }
  void push(const row&, auto&) { ++items; }
};
struct emits_after_250 {   // one item for 250 samples, which are more than two passes of a rank
  using output = row;
  std::size_t items = 0;
  std::size_t max_outputs(const row&) const { return 1; }
  void push(const row& r, auto& out) {
    if (++items % 250 == 0) out(r);
  }
};

template <class Flow>
std::string refusal_of(Flow flow, const mr::session_options& options) {
  try {
    mr::session run{std::move(flow), options};
    for (int i = 0; i < 1'000; ++i)
      if (!run.next()) return "an end without an error";
  } catch (const mr::setup_error& e) {
    return e.what();
  }
  return "no error in 1,000 batches";
}

mr::session_options on_ranks(int threads, std::size_t rank, std::size_t size, std::uint64_t epoch_batches) {
  auto options = quiet(threads, 1'000'000);
  options.world = {.rank = rank, .size = size};
  options.epoch_batches = epoch_batches;
  return options;
}

const auto in_fours = mr::batch<&row::n>({.size = 4});
const auto none_passes = mr::filter([](const row&) { return false; });

}  // namespace

TEST_CASE("a filter that nothing passes is named with its counts, on one rank and on each of four") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const stall_watchdog watchdog;
  for (const int threads : {0, 2})
    for (const std::uint64_t epoch_batches : {std::uint64_t{0}, std::uint64_t{10}, mr::endless}) {
      CAPTURE(threads);
      CAPTURE(epoch_batches);
      auto options = on_ranks(threads, 0, 1, epoch_batches);
      if (epoch_batches == mr::endless) options.epochs = 1;
      const auto flow = [&] {
        return mr::shards(shards, {.index = mr::index::off}) | mr::shuffle({.window = 10}) | numbered | none_passes |
               in_fours;
      };
      const std::string one = refusal_of(flow(), options);
      CHECK_MESSAGE(one.find("0 of 200 samples passed filter 1") != std::string::npos, one);
      CHECK(one.find("drop_last") == std::string::npos);
      if (epoch_batches == 0) continue;
      for (std::size_t rank = 0; rank < 4; ++rank) {
        options.world = {.rank = rank, .size = 4};
        const std::string text = refusal_of(flow(), options);
        CHECK_MESSAGE(text.find("0 of 50 samples passed filter 1") != std::string::npos, text);
      }
    }
}

TEST_CASE("one rank whose share has no row ends with an error, and the others have their rows") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const stall_watchdog watchdog;
  for (const int threads : {0, 2}) {
    int without = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const std::string text = refusal_of(
          mr::shards(shards, {.index = mr::index::off}) | numbered | mr::filter([](const row& r) { return r.n >= 0; }) |
              mr::filter([](const row& r) { return r.n < 150; }) | in_fours,
          on_ranks(threads, rank, 4, 10));
      without += text.find("0 of 50 samples passed filter 2") != std::string::npos;
    }
    CHECK(without == 1);
  }
}

TEST_CASE("each stage that can drop samples is named with its counts") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const stall_watchdog watchdog;
  for (const int threads : {0, 2}) {
    CAPTURE(threads);
    const auto check = [&](const auto& flow, std::uint64_t epoch_batches, std::size_t ranks, const char* expected) {
      const std::string text = refusal_of(flow(), on_ranks(threads, 0, ranks, epoch_batches));
      CHECK_MESSAGE(text.find(expected) != std::string::npos, text);
    };
    const auto expanded = [&] {
      return mr::shards(shards, {.index = mr::index::off}) | numbered | mr::expand(drops_all{}) | in_fours;
    };
    check(expanded, 0, 1, "expand 1 emitted 0 items for 200 samples");
    check(expanded, 10, 2, "expand 1 emitted 0 items for 100 samples");
    const auto items = [&] {
      return mr::shards(shards, {.index = mr::index::off}) | numbered | mr::expand(holds_all{}) | in_fours;
    };
    check(items, 10, 1, "expand 1 emitted 0 items for 200 samples");
    check(items, 10, 2, "expand 1 emitted 0 items for 100 samples");   // after 100 passes
    const auto before_take = [&] {
      return mr::shards(shards, {.index = mr::index::off}) | numbered | none_passes | mr::take(5) | in_fours;
    };
    check(before_take, 0, 1, "0 of 200 samples passed filter 1");
    const auto shuffled = [&] {
      return mr::shards(shards, {.index = mr::index::off}) | numbered | none_passes | mr::shuffle({.window = 8}) |
             in_fours;
    };
    check(shuffled, 10, 2, "0 of 100 samples passed filter 1");
    const auto with_take = [&] {
      return mr::shards(shards, {.index = mr::index::off}) | numbered | mr::filter([](const row&) { return true; }) |
             mr::take(3) | in_fours;
    };
    check(with_take, 0, 1, "drops them: 200 of 200 samples passed filter 1, 3 of ");
    check(with_take, 0, 1, " samples passed take 1");
    const auto few = [&] {
      return mr::shards(shards, {.index = mr::index::off}) | numbered |
             mr::filter([](const row& r) { return r.n < 3; }) | in_fours;
    };
    check(few, 0, 1, "an epoch has only 3 samples, fewer than the batch size of 4, and drop_last drops them: 3 of 200 "
                     "samples passed filter 1");
    const auto with_partial = [&] {
      return mr::shards(shards, {.index = mr::index::off}) | numbered | none_passes |
             mr::batch<&row::n>({.size = 4, .drop_last = false});
    };
    check(with_partial, 0, 1, "Check what filter 1 drops");
  }
}

TEST_CASE("packs and buckets of nothing name the filter before them") {
  const stall_watchdog watchdog;
  const auto words = mr::map([](int n) { return std::vector<std::uint32_t>(static_cast<std::size_t>(n % 5), 7); });
  const auto no_words = mr::filter([](const std::vector<std::uint32_t>&) { return false; });
  const std::string packed =
      refusal_of(mr::from(numbers(30)) | words | no_words | mr::pack({.length = 8, .separator = 1}) |
                     mr::batch<&mr::packed::ids>({.size = 2}),
                 on_ranks(2, 0, 1, 0));
  CHECK_MESSAGE(packed.find("0 of 30 samples passed filter 1") != std::string::npos, packed);
  const std::string one_row =
      refusal_of(mr::from(numbers(3)) | words | mr::pack({.length = 800, .separator = 1}) |
                     mr::batch<&mr::packed::ids>({.size = 2}),
                 on_ranks(2, 0, 1, 0));
  CHECK_MESSAGE(one_row.find("pack 1 emitted 1 items for 3 samples") != std::string::npos, one_row);
}

TEST_CASE("a stage that keeps items over many passes is not an error, and order and rows stay") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const stall_watchdog watchdog;
  auto options = on_ranks(2, 0, 2, 10);
  options.epochs = 2;
  mr::session run{mr::shards(shards, {.index = mr::index::off}) | numbered |
                      mr::filter([](const row& r) { return r.n % 2 == 0; }) | mr::shuffle({.window = 500}) | in_fours,
                  options};
  std::size_t rows = 0;
  for (auto& b : run) rows += b.size();
  CHECK(rows == 80);
}

TEST_CASE("a stage that keeps items may have passes without an output, and a filter none") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const stall_watchdog watchdog;
  for (const int threads : {0, 2}) {
    auto options = on_ranks(threads, 0, 2, 3);
    options.epochs = 2;
    mr::session run{mr::shards(shards, {.index = mr::index::off}) | numbered | mr::expand(emits_after_250{}) |
                        mr::batch<&row::n>({.size = 2}),
                    options};
    std::size_t rows = 0;
    for (auto& b : run) rows += b.size();
    CHECK(rows == 12);
  }
  // Without threads nothing is prefetched: the first pass of 100 samples ends the run.
  int calls = 0;
  const std::string text = refusal_of(mr::shards(shards, {.index = mr::index::off}) | numbered |
                                          mr::filter([&calls](const row&) {
                                            ++calls;
                                            return false;
                                          }) |
                                          in_fours,
                                      on_ranks(0, 0, 2, 10));
  CHECK_MESSAGE(text.find("0 of 100 samples passed filter 1") != std::string::npos, text);
  CHECK(calls < 1'000);
}
