// A source that delivers the samples of an indexed data set in the order of a run (exact_order or mix_plan).
//
//   mr::detail::indexed_source in(data, plan, {.world = mine, .first_epoch = 3, .first_position = 640'000});
//   auto reader = in.open(shard, epoch);
//   while (auto record = reader.next()) {
//     mr::detail::sample<mr::record> s{.item = std::move(record), .epoch = epoch};
//     reader.stamp(s);                      // stores the sample's identity in s
//     use(std::move(s));
//   }
//
// The read stage reads this source instead of the shards. Here, a "shard" is a block of consecutive positions. Blocks
// may be read in any order. The samples of a block are read together.
// Each sample adds one term to the digest of the run. The term depends on epoch, position, sample and the checksums of
// its payloads.
// The short last batch of an epoch may have no row for this rank. In this case, the reader returns the epoch's last
// sample as a void row (a row that is not delivered). If a session begins with this batch, the void row determines the
// shapes of the columns on this rank.
// Errors: if a sample cannot be read, all samples before it are returned first. The next call throws the error of the
// sample.
// Threads: any thread may call open(). Readers are not thread-safe. Lifetime: readers share ownership of the data and
// the order.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/io/tar/read/returning_keys.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/record.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/shuffle_quality.hpp>
#include <millrace/read/run/block_reader.hpp>

#include <map>
#include <memory>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The rank of the source, its start, and the size of its blocks.
struct indexed_source_options {
  millrace::world world{};
  std::uint64_t first_epoch = 0;
  std::uint64_t first_position = 0;        ///< position in that epoch, in rows of all ranks
  std::uint64_t samples_per_block = 256;   ///< number of samples of this rank in a block
};

template <class Data>
struct reader_of {
  using type = block_reader<Data>;
};
template <read_one_by_one Data>
struct reader_of<Data> {
  using type = single_block_reader<Data>;
};

/// Delivers the samples of an indexed data set block by block.
template <class Data, class Plan = exact_order>
class indexed_source {
 public:
  using item = typename Data::item;
  using options = indexed_source_options;
  /// True if shuffle_quality() exists: only for a single data set, not for a mix.
  static constexpr bool observes = std::is_same_v<Plan, exact_order>;

  indexed_source(std::shared_ptr<Data> data, const Plan& plan, options o);

  /// Returns the number of blocks in an epoch. In the first epoch, reading begins with block first_shard().
  std::size_t shards() const;
  /// Returns the number of the block that contains the start of the run.
  std::size_t first_shard() const;

  /// Returns the shuffle quality of all samples whose order was computed so far. These include samples that are not
  /// delivered yet.
  shuffle_statistics shuffle_quality() const
    requires observes
  {
    const std::lock_guard lock(shared_->mutex);
    return shared_->observed.statistics();
  }

  /// Returns the meter of the data set's reads.
  read_meter& reads() const
    requires requires(const Data& d) { d.reads(); }
  {
    return shared_->data->reads();
  }

  /// Returns the location of another part of a sample whose members are not adjacent in its shard.
  template <class From = Data>
    requires requires(const From& d, const error_location& at) { d.other_piece_of(at); }
  std::optional<other_piece> other_piece_of(const error_location& sample) const {
    return shared_->data->other_piece_of(sample);
  }

  /// Reads the samples of one block.
  using reader = typename reader_of<Data>::type;
  /// Returns a reader of block `shard` of epoch `epoch`. Each block can be opened once.
  reader open(std::size_t shard, std::uint64_t epoch) const {
    return {shared_->data, shared_->plan.positions(), shared_->planned(shard, epoch)};
  }

 private:
  using samples = std::vector<ordered_sample>;

  struct unobserved {
    unobserved(const Plan&, const world&) {}
    void add(const ordered_sample&) {}
  };

  struct shared {
    shared(std::shared_ptr<Data> d, const Plan& p, const indexed_source_options& o);

    /// Returns the samples of a block. Blocks are computed in order. Blocks that are not requested yet are stored in
    /// `ahead`.
    samples planned(std::uint64_t shard, std::uint64_t epoch);

    void plan_next();

    /// Announces the shards that this rank reads in the current pass, from sample `first` on.
    void announce_shards(const ordered_sample& first) const;

    /// Returns the epoch's last sample as a void row. The position of a void row is after the end of the epoch.
    ordered_sample void_row() const;

    const std::shared_ptr<Data> data;
    const Plan plan;
    const indexed_source_options options;
    const std::uint64_t block;   // number of positions of a block, over all ranks
    std::mutex mutex;
    typename Plan::cursor cursor;
    std::uint64_t next_epoch, next_shard;
    std::uint64_t announced_pass = ~std::uint64_t{0};
    std::conditional_t<observes, millrace::detail::shuffle_quality, unobserved> observed;
    std::map<std::pair<std::uint64_t, std::uint64_t>, samples> ahead;
  };

  std::shared_ptr<shared> shared_;
};

template <class Data, class Plan>
MILLRACE_INLINE indexed_source<Data, Plan>::indexed_source(std::shared_ptr<Data> data, const Plan& plan, options o)
    : shared_(make_shared_object<shared>(std::move(data), plan, o)) {}

template <class Data, class Plan>
MILLRACE_INLINE std::size_t indexed_source<Data, Plan>::shards() const {
  const auto& s = *shared_;
  return static_cast<std::size_t>((s.plan.positions() - 1) / s.block + 1);
}

template <class Data, class Plan>
MILLRACE_INLINE std::size_t indexed_source<Data, Plan>::first_shard() const {
  return static_cast<std::size_t>(shared_->options.first_position / shared_->block);
}

template <class Data, class Plan>
MILLRACE_RARE indexed_source<Data, Plan>::shared::shared(std::shared_ptr<Data> d, const Plan& p,
                                                         const indexed_source_options& o)
    : data(std::move(d)),
      plan(p),
      options(o),
      block(o.samples_per_block * o.world.size),
      cursor(plan, {.world = o.world, .epoch = o.first_epoch, .position = o.first_position}),
      next_epoch(o.first_epoch),
      next_shard(o.first_position / block),
      observed(plan, o.world) {}

template <class Data, class Plan>
MILLRACE_INLINE auto indexed_source<Data, Plan>::shared::planned(std::uint64_t shard, std::uint64_t epoch) -> samples {
  const std::lock_guard lock(mutex);
  const auto key = std::pair(epoch, shard);
  while (!ahead.contains(key)) plan_next();
  auto block_of_key = ahead.extract(key);
  return std::move(block_of_key.mapped());
}

template <class Data, class Plan>
MILLRACE_INLINE void indexed_source<Data, Plan>::shared::plan_next() {
  samples& result = ahead[{next_epoch, next_shard}];
  const std::uint64_t end = std::min(plan.positions(), (next_shard + 1) * block);
  result.reserve(static_cast<std::size_t>(options.samples_per_block));
  while (cursor.position() < end) {
    result.push_back(*cursor.next());
    observed.add(result.back());
  }
  for (const ordered_sample& s : result) {
    if (s.pass == announced_pass) continue;
    announced_pass = s.pass;
    announce_shards(s);
  }
  if (end < plan.positions()) {
    ++next_shard;
    return;
  }
  if (plan.rows(plan.batches() - 1, options.world) == 0) result.push_back(void_row());
  ++next_epoch;
  next_shard = 0;
  cursor.move_to(next_epoch, 0);
}

template <class Data, class Plan>
MILLRACE_RARE void indexed_source<Data, Plan>::shared::announce_shards(const ordered_sample& first) const {
  if constexpr (observes && requires { data->expect_shards(std::span<const std::size_t>()); }) {
    // A uniform permutation needs all shards during the complete pass.
    const bool by_lanes = plan.settings().shuffled && !plan.permutes();
    const std::uint64_t number = plan.permutes() ? 0 : plan.spot_of(first.epoch, first.position).number;
    const std::uint64_t lanes = by_lanes ? plan.settings().lanes : 1, done = number / lanes;
    const std::uint64_t step = by_lanes ? plan.lane_step(options.world) : 1;
    const pass_layout layout = plan.layout_of(first.pass);
    std::vector<std::size_t> coming;
    for (std::uint64_t lane = number % step; lane < lanes; lane += step) {
      coming.clear();
      const std::uint64_t end = by_lanes ? plan.lane_begin(lane + 1) : layout.length();
      for (std::uint64_t at = done + (by_lanes ? plan.lane_begin(lane) : 0); at < end;) {
        const located_sample located = layout.find(at);
        coming.push_back(located.shard);
        at += plan.settings().counts[located.shard] - located.index;
      }
      data->expect_shards(coming);
    }
  }
}

template <class Data, class Plan>
MILLRACE_INLINE ordered_sample indexed_source<Data, Plan>::shared::void_row() const {
  ordered_sample last = plan.sample_at(next_epoch, plan.positions() - 1);
  last.position = (plan.batches() - 1) * plan.settings().global_batch + options.world.rank;
  return last;
}

}}}   // namespace millrace::detail
