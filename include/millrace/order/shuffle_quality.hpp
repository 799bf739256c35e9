// Measures the shuffle quality of one rank's samples during a run, for comparison with the forecast.
//
//   mr::detail::shuffle_quality live(order, mine);
//   live.add(planned);                 // each sample of this rank, in the order of positions
//   auto f = live.statistics();           // session::shuffle_quality() also fills in expected_share and ideal_share
//   f.share;                           // the share of a batch's most frequent shard, averaged over batches
//   f.neighbor_distance;              // mean number of positions between two samples that were adjacent in their shard
//   f.ideal_neighbor_distance;        // the distance after a uniform shuffle of the complete data set
//
// order/shuffle_forecast.hpp explains shares. The distance of neighbors matters, because neighbors in a shard are often
// similar, such as the frames of a video. The mean distance is about a third of the window. In each pass, the object
// observes up to about 2,048 batches and 4,096 pairs of neighbors. A rank observes a pair only if the rank delivers
// both samples.
// Cost: 1 to 3 ns per sample, and 4 bytes for each shard. Errors: none. Threads: not thread-safe.
// Lifetime: the exact_order must outlive the object.
#pragma once

#include <millrace/measure/values/run_stats.hpp>
#include <millrace/order/shuffle_forecast.hpp>

#include <unordered_map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Observes the samples of one rank and measures their shuffle quality.
class shuffle_quality {
 public:
  explicit shuffle_quality(const exact_order& plan, const world& mine = {});

  /// Observes the next sample of the rank. Call it in the order of positions.
  void add(const ordered_sample& s);

  /// Returns the statistics of the samples so far.
  shuffle_statistics statistics() const noexcept;

 private:
  static constexpr std::uint64_t watched_pairs = 4'096, watched_batches = 1'024;

  void begin_batch(const ordered_sample& first);
  void watch(const ordered_sample& s);

  const exact_order* plan_;
  world world_;
  shard_counter counter_;
  std::unordered_map<std::uint64_t, std::uint64_t> first_of_pair_;   // for each pair, the ordinal of its first sample
  std::uint64_t epoch_ = ~std::uint64_t{0}, pass_ = 0, batch_begin_ = 0;
  bool batch_is_watched_ = false;
  std::size_t rows_of_batch_ = 0;
  std::uint64_t pair_mask_ = 0, batch_mask_ = 0;
  double share_sum_ = 0, distance_sum_ = 0;
  shuffle_statistics statistics_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/shuffle_quality.inl>
#endif
