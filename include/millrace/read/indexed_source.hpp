// A source that gives the samples of an indexed data set in the order of a exact_order (or a mix_plan): what intake
// reads in place of the shards themselves. Its parts are stretches of the plan, which are read at once and in any
// order.
//
//   indexed_source in(data, plan, {.world = mine, .start = resumed, .samples_per_part = 256});
//   auto reader = in.open(shard, epoch);
//   while (auto record = reader.next()) { s.item = std::move(record);  reader.stamp(s); }        // and which it is
//
// A sample's part of the run's digest is the term of (epoch, position) and (sample, checksums of its payloads). Where
// an epoch's short last batch has no row for this rank, the reader gives the epoch's last sample as a void row: every
// rank has that batch, and knows the shapes should it begin with it.
// Errors: of the sample that cannot be read, after those before it. Threads: open() from any; a reader belongs to one.
// Lifetime: readers keep what they need.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/item/record.hpp>
#include <millrace/measure/read_meter.hpp>
#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/shuffle_quality.hpp>

#include <map>
#include <memory>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI {

struct indexed_source_options {
  millrace::world world{};
  std::uint64_t first_epoch = 0;
  std::uint64_t first_position = 0;      ///< in that epoch, of all ranks together
  std::uint64_t samples_per_shard = 256;
};

template <class Data, class Plan = exact_order>
class indexed_source {
 public:
  using item = typename Data::item;
  using options = indexed_source_options;
  /// Whether mixing() is known: of one data set.
  static constexpr bool observes = std::is_same_v<Plan, exact_order>;

  indexed_source(std::shared_ptr<Data> data, const Plan& plan, options o)
      : shared_(std::make_shared<shared>(std::move(data), plan, o)) {}

  /// Of an epoch; those before first_part() are not in the first one.
  std::size_t shards() const {
    const auto& s = *shared_;
    return static_cast<std::size_t>((s.plan.positions() - 1) / s.stretch + 1);
  }
  std::size_t first_shard() const {
    return static_cast<std::size_t>(shared_->options.first_position / shared_->stretch);
  }

  /// Of the samples that were planned so far, those read ahead among them.
  shuffle_quality_figures shuffle_quality() const
    requires observes
  {
    const std::lock_guard lock(shared_->mutex);
    return shared_->observed.figures();
  }

  read_meter& reads() const
    requires requires(const Data& d) { d.reads(); }
  {
    return shared_->data->reads();
  }

  class reader;
  reader open(std::size_t shard, std::uint64_t epoch) const { return {shared_, shared_->planned(shard, epoch)}; }

 private:
  using samples = std::vector<planned_sample>;

  struct unobserved {
    unobserved(const Plan&, const world&) {}
    void add(const planned_sample&) {}
  };

  struct shared {
    shared(std::shared_ptr<Data> d, const Plan& p, const indexed_source_options& o)
        : data(std::move(d)),
          plan(p),
          options(o),
          stretch(o.samples_per_shard * o.world.size),
          cursor(plan, {.world = o.world, .epoch = o.first_epoch, .position = o.first_position}),
          next_epoch(o.first_epoch),
          next_shard(o.first_position / stretch),
          observed(plan, o.world) {}

    /// Parts are asked for nearly in order: what is passed on the way is kept for whoever asks for it.
    samples planned(std::uint64_t shard, std::uint64_t epoch) {
      const std::lock_guard lock(mutex);
      const auto wanted = std::pair(epoch, shard);
      while (!ahead.contains(wanted)) plan_next();
      auto found = ahead.extract(wanted);
      return std::move(found.mapped());
    }

    void plan_next() {
      samples& made = ahead[{next_epoch, next_shard}];
      const std::uint64_t end = std::min(plan.positions(), (next_shard + 1) * stretch);
      while (cursor.position() < end) {
        made.push_back(*cursor.next());
        observed.add(made.back());
      }
      if (end < plan.positions()) {
        ++next_shard;
        return;
      }
      if (plan.rows(plan.batches() - 1, options.world) == 0) made.push_back(stand_in());
      ++next_epoch;
      next_shard = 0;
      cursor.move_to(next_epoch, 0);
    }

    /// At the position of this rank's first row in the last batch, which lies behind the epoch's end.
    planned_sample stand_in() const {
      planned_sample last = plan.sample_at(next_epoch, plan.positions() - 1);
      last.position = (plan.batches() - 1) * plan.settings().global_batch + options.world.rank;
      return last;
    }

    const std::shared_ptr<Data> data;
    const Plan plan;
    const indexed_source_options options;
    const std::uint64_t stretch;   // positions of all ranks together
    std::mutex mutex;
    typename Plan::cursor cursor;
    std::uint64_t next_epoch, next_shard;
    std::conditional_t<observes, millrace::shuffle_quality, unobserved> observed;
    std::map<std::pair<std::uint64_t, std::uint64_t>, samples> ahead;
  };

 public:
  class reader {
   public:
    reader(std::shared_ptr<shared> from, samples wanted) : from_(std::move(from)), wanted_(std::move(wanted)) {}

    std::optional<item> next() {
      if (at_ == 0 && !wanted_.empty()) read();
      if (at_ + prefetched < good_) records_[at_ + prefetched].prefetch_checksums();
      if (at_ < good_) return std::move(records_[at_++]);
      if (failure_) std::rethrow_exception(failure_);
      return std::nullopt;
    }
    /// Names what next() gave last, which `s` holds by now.
    void stamp(sample<item>& s) const {
      const planned_sample& last = wanted_[at_ - 1];
      s.pass = last.pass;
      s.id = last.sample.id();
      if (last.position >= from_->plan.positions()) {
        s.what = sample<item>::kind::void_row;
        return;
      }
      s.digest = stream_digest::term(combine_keys(combine_keys(0, last.epoch), last.position),
                                     combine_keys(s.id, s.item->checksums()));
    }

   private:
    static constexpr std::size_t prefetched = 16;   // stamp() looks at records that may lie in memory for long

    void read() {
      std::vector<located_sample> places;
      places.reserve(wanted_.size());
      for (const auto& w : wanted_) places.push_back(w.sample);
      records_.resize(places.size());
      good_ = from_->data->read(places, records_, failure_);
    }

    std::shared_ptr<shared> from_;
    samples wanted_;
    std::vector<item> records_;
    std::size_t good_ = 0, at_ = 0;
    std::exception_ptr failure_;
  };

 private:
  std::shared_ptr<shared> shared_;
};

}}  // namespace millrace
