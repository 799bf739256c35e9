// delivered + dropped_last = planned: at the end of each epoch, on each rank.
#include "indexed_runs.hpp"

#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/read/run/delivery_account.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/list/shard_list.hpp>

namespace mr = millrace;
using namespace indexed_runs;

namespace {

/// Shards whose one read, in the middle of the run, returns a sample fewer than requested, and no error.
class losing_data : public mr::detail::shard_data {
 public:
  losing_data(std::vector<std::string> names, std::uint64_t lost_reading)
      : shard_data(std::move(names), {.reader = {.fields = {"cls"}}}), lost_reading_(lost_reading) {}

  std::size_t read(std::span<const mr::detail::located_sample> positions, std::span<mr::record> records,
                   std::exception_ptr& failure) {
    const std::size_t good = shard_data::read(positions, records, failure);
    return readings_.fetch_add(1) == lost_reading_ ? good - 1 : good;
  }

 private:
  const std::uint64_t lost_reading_;
  std::atomic<std::uint64_t> readings_{0};
};

struct losing_source {
  using item = mr::record;
  using planned = mr::detail::indexed_run<losing_data>;

  std::unique_ptr<planned> plan(const mr::detail::indexed_run_options& o) const {
    return std::make_unique<planned>(data, o); }
  std::size_t shards() const { return data->counts().size(); }
  typename planned::source_type::reader open(std::size_t shard, std::uint64_t epoch) const;

  std::shared_ptr<losing_data> data;
};

/// Runs three epochs, with 24 samples to each reading, and returns the exception.
std::string loss_of(const std::string& shards, std::uint64_t lost_reading, run_options o, std::uint64_t& batches) {
  auto data = std::make_shared<losing_data>(mr::list_shards(shards), lost_reading);
  mr::detail::flow<mr::record, losing_source> source{{}, {std::move(data)}, o.seed};
  auto options = quiet(o.threads, o.epochs);
  options.epoch_batches = o.epoch_batches;
  options.world = o.world;
  options.memory_bytes = 24 * 1'600 * 128;   // for parts of about 24 samples
  mr::session session{flow_of(std::move(source), o), options};
  batches = 0;
  try {
    for (auto& b : session) batches += b.size() > 0;
  } catch (const mr::conservation_error& e) {
    CHECK_THROWS_WITH_AS(session.next(), doctest::Contains("the session has ended with an error"), mr::setup_error);
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a source that loses a sample is detected at the end of that epoch, with both sums") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  std::uint64_t batches = 0;
  for (const int threads : {0, 2}) {
    CHECK(loss_of(shards, 9'999, {.threads = threads}, batches) == "no error");
    CHECK(batches == 24);
    const std::string first = loss_of(shards, 1, {.threads = threads}, batches);
    CHECK(first.starts_with("epoch 0 delivered 168 samples in 7 batches, 19 dropped (187 in total): expected 192 in "
                            "8 batches, 19 dropped (211 in total on this rank)"));
    CHECK(batches == 7);
    const std::string short_last = loss_of(shards, 1, {.threads = threads, .drop_last = false}, batches);
    CHECK(short_last.starts_with("epoch 0 delivered 210 samples in 9 batches, 0 dropped (210 in total): expected 211 "
                                 "in 9 batches, 0 dropped (211"));
    const std::string other_rank = loss_of(
        shards, 1, {.world = {.rank = 1, .size = 2}, .threads = threads, .drop_last = false}, batches);
    CHECK(other_rank.starts_with("epoch 0 delivered 104 samples in 9 batches, 0 dropped (104 in total): expected "
                                 "105 in 9"));
    const std::string at_the_end = loss_of(shards, 2, {.epochs = 1, .epoch_batches = 9, .threads = threads}, batches);
    CHECK(at_the_end.starts_with("epoch 0 was interrupted by the end of the run: it delivered 192 samples in 8 "
                                 "batches"));
    CHECK(batches == 8);
  }
}

TEST_CASE("over all ranks, planned, delivered and dropped samples add up to the data set") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 6U, 8U, 12U, 24U}) {
    std::uint64_t delivered = 0, dropped = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto d = run(shards, {.epochs = 2, .world = {.rank = r, .size = ranks}, .threads = 0});
      delivered += d.stats.samples;
      dropped += d.stats.dropped_last;
    }
    CHECK(delivered == 2 * 192);
    CHECK(dropped == 2 * 19);
  }
}

TEST_CASE("an epoch that is longer than planned is a violation, and so is each batch out of its epoch") {
  const mr::detail::delivery_account_options o{.batches = 2, .rows = 5, .dropped = 1};
  mr::detail::delivery_account good(o);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    for (const std::size_t rows : {3U, 2U}) good.deliver({.epoch = epoch, .rows = rows, .digest = 7});
  CHECK(good.digest() == 42);
  CHECK(good.dropped() == 3);
  good.finish();
  mr::detail::delivery_account longer(o);
  longer.deliver({.rows = 3});
  CHECK_THROWS_WITH_AS(longer.deliver({.rows = 3}),
                       doctest::Contains("(7 in total): expected 5 in 2 batches, 1 dropped (6 in total"),
                       mr::conservation_error);
  mr::detail::delivery_account early(o);
  CHECK_THROWS_AS(early.deliver({.epoch = 1, .rows = 3}), mr::conservation_error);
  mr::detail::delivery_account unfinished(o);
  unfinished.deliver({.rows = 3});
  CHECK_THROWS_AS(unfinished.finish(), mr::conservation_error);
  mr::detail::delivery_account resumed({.epoch = 4, .batch = 1, .batches = 2, .rows = 5, .delivered = 3, .digest = 1});
  resumed.deliver({.epoch = 4, .rows = 2, .digest = 2});
  CHECK(resumed.digest() == 3);
}
