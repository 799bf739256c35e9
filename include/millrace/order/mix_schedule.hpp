// Assigns each position of a mix to a source. A mix needs a schedule if its weights change, or if it has more than 64
// sources. For all other mixes, a mix_pattern (mix_pattern.hpp) suffices.
//
//   const auto schedule = mr::detail::mix_schedule::of(rule, samples);   // null if a mix_pattern suffices
//   const auto phase = schedule->phase_at(70'000);              // the block of positions that contains 70,000
//   phase->pattern.source_at(70'000 - phase->begin);            // the source of the position
//   schedule->counts_of({.rank = 1, .size = 4}, 0, 70'000);     // for each source, the samples of this rank
//
// Blocks: the positions are divided into blocks, usually of 256 positions. A block also ends at each point of steps()
// and linear() (functions that define changing weights). Weights are evaluated once per block. For a linear weight, the
// mean over the block is used. A weight function of the user is called for the first position of the block.
//
// Shares: the lag of a source is its expected number of samples up to the end of the block, minus its samples in
// earlier blocks. In each block, each source first gets as many positions as the integer part of its lag. Then the
// sources with the largest remaining lags get one more position each, until the block is full. A mix_pattern
// (mix_pattern.hpp) distributes the samples inside the block. Lags are integers, and every machine computes the same
// result. A resume point does not store lags: a resume computes the earlier blocks again.
//
// Positions are counted from the start of the run. With the rules stop and reweight (flow/source_weight.hpp), positions
// are counted from the start of the epoch, and a block also ends where a source has no more samples.
// Accuracy: at the end of a block, a source has less than one sample too many. With two sources, each source lacks less
// than one sample. With more sources, each source lacks at most 1 + ln(sources) samples.
// Cost: a resume walks over all earlier blocks, at about 30 ns per source and block. Memory: 4 MiB for checkpoints of
// the walk.
// Errors: setup_error for invalid weights, and for weights that are all 0 at a position. setup_error if weights change
// and the rule is not repeat.
// Threads: any thread may call any member.
#pragma once

#include <millrace/item/world.hpp>
#include <millrace/order/mix_pattern.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An interval of positions with one pattern. The first position of the interval is position 0 of the pattern.
struct mix_phase {
  std::uint64_t begin = 0;
  mix_pattern pattern;
  std::vector<std::uint64_t> counts_before;   ///< samples of each source before the interval
  std::uint64_t end = ~std::uint64_t{0};
};

/// The source of each position, computed block by block.
class mix_schedule {
 public:
  /// A mix with constant weights needs a schedule only if it has more sources than this.
  static constexpr std::size_t pattern_sources = 64;

  /// Returns the schedule of a mix, or null if a mix_pattern suffices. `samples` has the number of samples in a pass of
  /// each source. If the numbers are unknown, `samples` is empty. The result is then null for constant weights, even
  /// with more than 64 sources.
  static std::shared_ptr<const mix_schedule> of(const mix_rule& rule, std::vector<std::uint64_t> samples);
  /// Returns numbers that identify the weights. If a mix_pattern suffices, they are the result of
  /// mix_pattern::shares_of(). Otherwise, each number is a hash of a source's weight. Throws setup_error for invalid
  /// weights.
  static std::vector<std::uint64_t> weight_keys(const std::vector<mix_source_spec>& sources);

  /// `samples` has the number of samples in a pass of each source. With stop and reweight, a source delivers at most
  /// one pass.
  mix_schedule(const mix_rule& rule, std::vector<std::uint64_t> samples);

  /// Returns the block that contains a position.
  std::shared_ptr<const mix_phase> phase_at(std::uint64_t position) const;

  /// Returns, for each source, the number of samples of one rank in the positions [begin, end) of the run. If a recent
  /// call had the same rank and `begin`, and a lower `end`, the computation continues from that `end`.
  std::vector<std::uint64_t> counts_of(const world& mine, std::uint64_t begin, std::uint64_t end) const;

  /// Returns the source whose first pass ends last, and the number of positions until this end. With stop, returns the
  /// source whose first pass ends first. Throws setup_error if the pass does not end within 2^32 positions.
  std::pair<std::size_t, std::uint64_t> first_pass() const;

 private:
  static bool changes(const std::vector<mix_source_spec>& sources);
  static bool is_needed(const std::vector<mix_source_spec>& sources);

  /// A walk over the blocks.
  struct walk {
    std::uint64_t begin = 0, end = 0;
    std::vector<std::uint64_t> counts, quotas;   // of each source: samples before the block, and in the block
    std::vector<std::int64_t> lags;              // at the end of the block, in units of 2^-32

    bool is_exhausted(std::size_t i, const std::vector<std::uint64_t>& samples) const noexcept {
      return counts[i] + quotas[i] >= samples[i];
    }
  };
  /// Moves a walk to its next block. With stop and reweight, the block after the end of the epoch has no end.
  void advance(walk& at) const;
  /// Returns, for each source that completes its first pass in a block, the position after its last sample.
  std::vector<std::uint64_t> ends_in(const walk& at, const mix_pattern& pattern) const;
  /// If a source runs out in a block, ends the block at that position.
  void cut(walk& at) const;
  /// Returns the end of the block that begins at a position.
  std::uint64_t block_end(std::uint64_t begin) const;
  /// Moves `walk_` to the block that contains a position.
  void move_to(std::uint64_t position) const;
  walk start() const;

  // maximum number of positions of an epoch whose length `epoch_batches` does not set
  static constexpr std::uint64_t longest_epoch = std::uint64_t{1} << 32;
  /// Returns whether the weights are the same at all positions from `begin` on.
  bool has_final_weights(std::uint64_t begin) const;
  /// Returns one of `sources` whose first pass cannot end within `longest_epoch` positions, or nothing. Requires that
  /// has_final_weights(at.begin) is true.
  std::optional<std::size_t> endless_source(const walk& at, std::span<const std::size_t> sources) const;

  struct rank_counts {
    world mine{};
    std::uint64_t begin = 0, end = 0;
    std::vector<std::uint64_t> counts{};
  };

  exhausted on_exhausted_;
  std::vector<std::uint64_t> samples_;
  std::vector<source_weight> weights_;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> knots_;   // positions of all points of steps() and linear(), in ascending order
  std::uint64_t block_ = 256;
  mutable std::mutex mutex_;
  mutable walk walk_;
  mutable std::vector<walk> checkpoints_;
  mutable std::uint64_t spacing_ = 1 << 16, next_checkpoint_ = 0;   // in positions
  mutable std::shared_ptr<const mix_phase> last_;
  mutable std::mutex counts_mutex_;
  mutable std::array<rank_counts, 2> counted_;   // results of counts_of() for two intervals, for reuse
  mutable std::size_t oldest_counted_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/mix_schedule.inl>
#endif
