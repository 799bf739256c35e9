// While a session runs, finds the smallest numbers of workers and concurrent reads that suffice for the training step.
//
//   #include <millrace/tuning.hpp>
//   mr::session run{std::move(flow), {.epochs = 90, .tuning = mr::tuning()}};
//
// Tuning begins with session_options::threads and io_threads. Tuning evaluates windows (parts of the run) of at least
// 20 batches and 0.2 s. A search (tuning_search) changes the numbers at most five times, and ends when no further
// change is useful. If the run changes later, the search restarts. Order, random numbers and digests do not change.
// Memory stays within the session's budget. At the start, the session creates slots (memory of batches) for the maximum
// number of workers. The number of concurrent reads is limited by the space in the budget. The number of threads of a
// blocking map does not change. With `threads = 0`, nothing is tuned. Use tuning for training runs only; a benchmark
// needs fixed numbers. The session reports each decision as a notice of kind `tuning`.
// Errors: setup_error for an option below its minimum. Threads: tuning runs on the training thread, in next().
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/tune/autotuner.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <limits>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Searches for the smallest sufficient numbers of workers and reads. A search evaluates windows (short measured parts)
// of a run, and computes moves (changes of the numbers). A search has neither a thread nor a clock.
//
// The reachable rate of a run is the lowest of four rates:
// - the rate of the training step
// - the rate of the slowest stage that is not tuned
// - the rate of the maximum number of workers
// - the rate of the reads at their knee: the smallest n for which 2 n reads are less than 5 % faster than n reads
//
// The target is the smallest numbers of workers and reads that can deliver this rate while they are busy for at most 95
// % of the time. If the trainer waits for data for a larger share of the time than `data_wait`, the search raises the
// numbers; otherwise, it lowers them. A search has at most five moves, and follows these rules:
// - A number that was too low, or an increase that gained nothing, is not tried again.
// - A number that rose after a fall does not fall again.
// - After the third move, the search lowers a number only if the trainer waits for data.
//
// If the measured rates do not explain a wait, the search reacts only after two consecutive windows with a wait. A
// search that has ended restarts after three consecutive windows in which one of these conditions is true:
// - The trainer waits for data, but did not wait in the last window of the search.
// - The time per sample of the step, of the workers or of the reads has changed by more than a quarter since the search
// ended. In addition, a target number is at least a quarter below the current number, or the trainer waits and the
// target differs from the current numbers.
//
// Errors: none. Threads: not synchronized.
// Source: flow_statistics.hpp for the utilization law; the stage-based autotuning of tf.data for the target.

// Reduces the measurements of a window to the numbers that the search needs.
//
//   mr::detail::tuning_window w = mr::detail::tuning_window_of(now - before);
//   w.rate_of_workers(6);   w.rate_of_reads(8);      // samples per second that this number can deliver
//
// Utilization law (flow_statistics.hpp): n threads that work d seconds per sample process n / d samples per second.
// A read needs the time t if no other read is outstanding. With k outstanding reads, each read needs t x (1 +
// contention x (k - 1)); see measure/values/read_levels.hpp.
// Errors: none. If a window did not measure a stage, the rate of the stage is infinite. Threads: not synchronized.

/// Metrics of one window. Times are in seconds, rates in delivered samples per second.
struct tuning_window {
  static constexpr double without_limit = std::numeric_limits<double>::infinity();

  double data_wait = 0;                    ///< share of the time in which the trainer or its device waits for data
  double rate = 0;                         ///< delivered samples per second
  double read_rate = 0;                    ///< speed of reading, in delivered samples per second
  double step_rate = without_limit;        ///< rate of a step that never waits for data
  double fixed_rate = without_limit;       ///< rate of the slowest stage that is not tuned
  std::string fixed_name{};                ///< name of the slowest stage that is not tuned
  double work_s = 0, all_work_s = 0;       ///< worker time per sample: in the slowest stage, and in all stages
  bool reads = false;                      ///< whether the window has enough reads to estimate their rate
  double reading_s = 0, unpacking_s = 0;   ///< time of the I/O threads per sample
  double outstanding = 1;                  ///< mean number of outstanding reads while at least one is outstanding
  std::optional<double> contention{};      ///< contention of reads, 0 to 1; empty if unknown
  concurrency_counts open{};               ///< numbers of open (active) workers and reads

  /// Returns the rate that `n` workers can deliver; infinite if the workers had no work.
  double rate_of_workers(std::size_t n) const noexcept;
  /// Returns the rate that `n` concurrent reads can deliver; infinite if `reads` is false.
  double rate_of_reads(std::size_t n) const noexcept;
};

/// Returns the metrics of the window `f`.
tuning_window tuning_window_of(const flow_statistics& f);

/// A decision after a window, and the reason for it.
struct tuning_decision {
  std::uint64_t batches = 0;   ///< batches delivered so far
  std::size_t moves = 0;       ///< moves of this search so far
  bool settled = false;        ///< whether the search has ended
  concurrency_counts from{}, to{};
  double data_wait = 0;   ///< wait for data in the window, as a share of the time
  std::string why{};

  /// Returns a line of text such as:
  /// "tuning after 60 batches: 2 -> 6 workers, 4 reads; data wait 37.0 %: the step needs 5.4 workers, 1.1 reads"
  std::string text() const;
};

/// The start and the limits of a search. `data_wait` has the same meaning as in tuning_options.
struct tuning_search_options {
  concurrency_counts open{}, max{};
  double data_wait = 0.02;
};

/// Decides after each window of a run.
class tuning_search {
 public:
  using options = tuning_search_options;

  explicit tuning_search(options o) : options_(o), open_(o.open), cap_(o.max) {}

  /// Returns the workers and reads that should be open now.
  const concurrency_counts& open() const noexcept { return open_; }
  /// Returns whether the search has ended.
  bool settled() const noexcept { return settled_; }

  /// Evaluates a window. Returns a decision, or nothing if no decision is necessary.
  std::optional<tuning_decision> evaluate(tuning_window w);

 private:
  static constexpr double busy_share = 0.95;      // busy share of the workers and reads at the target
  static constexpr double gain_of_twice = 1.05;   // beyond the knee, twice as many reads gain less than this factor

  struct aim {
    concurrency_counts least{};
    bool out_of_reach = false;   // no number of workers and reads reaches the rate of the step
    bool tight = false;          // the open workers and reads have no spare time
    std::string text{};
  };
  struct state {
    concurrency_counts open{};
    double data_wait = 0, read_rate = 0;
    double expected_gain = 0;   // the expected gain of the move from this state, as a share
  };

  /// The history of one number (workers or reads) in this search. If the number rises after a fall, it does not fall
  /// again.
  struct past {
    std::size_t too_few = 0;
    bool fell = false, rose_again = false;
    void move(std::size_t from, std::size_t to) noexcept;
  };
  struct read_sample {
    std::size_t open = 0;
    double reading_s = 0, outstanding = 1;
  };

  aim aim_for(const tuning_window& w) const;

  template <class Rate>
  static std::size_t least(std::size_t limit, double needed, const Rate& rate_of) {
    std::size_t n = 1;
    while (n < limit && rate_of(n) < needed) ++n;
    return n;
  }
  /// Returns the knee: the smallest n for which 2 n reads are less than 5 % faster than n reads. If the contention is
  /// unknown, returns four times the number of open reads.
  std::size_t knee_of(const tuning_window& w) const;
  concurrency_counts within(const concurrency_counts& target) const;
  /// If `target` is less than `open` by at least an eighth, returns `target`; otherwise returns `open`. Never returns a
  /// number that was too low before. Never lowers a number that rose after a fall. Never returns less than a quarter of
  /// `open`, because one window may be wrong.
  static std::size_t lowered(std::size_t open, std::size_t target, const past& p);
  concurrency_counts nearer(const concurrency_counts& target) const;
  /// Returns lowered numbers for a window without a wait. If the open workers and reads have no spare time, raises the
  /// numbers instead.
  concurrency_counts reduced(const aim& a) const;
  /// Adds one worker if the workers have a lower rate than the reads; otherwise adds one read. Changes nothing if both
  /// rates are far above the rate of the step.
  concurrency_counts one_more(const tuning_window& w) const;

  /// Estimates the contention from the read times of two windows with different numbers of outstanding reads. If the
  /// estimate is higher than w.contention, stores the estimate there.
  void learn_contention(tuning_window& w);
  bool reverted_useless_move(const tuning_window& w);
  bool restarts(const tuning_window& w);
  std::optional<tuning_decision> decide(const tuning_window& w, concurrency_counts to, std::string why);
  void settle(const tuning_window& w);

  const options options_;
  concurrency_counts open_, cap_;   // cap_: the allowed maximum; a useless increase lowers it
  past workers_{}, reads_{};
  static constexpr std::size_t max_moves = 5;   // a run that needs more moves is not steady enough to tune
  std::size_t moves_ = 0, waits_in_turn_ = 0, changed_in_turn_ = 0;
  bool settled_ = false, out_of_reach_ = false;   // out_of_reach_: settled although the trainer waits for data
  state before_{};                                // state before the last move
  tuning_window settled_at_{};
  read_sample here_{}, before_here_{};   // at the current number of reads, and at the previous number
};

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of tuning().
struct tuning_options {
  std::optional<std::size_t> max_workers{};   ///< maximum number of workers; by default the number of usable cores
  std::size_t max_reads = 32;                 ///< maximum number of concurrent reads; each has an I/O thread
  double data_wait = 0.02;                    ///< accepted wait for data, as a share of the training time
};

namespace detail {

/// Measures windows of a run, and applies the decisions of a tuning_search.
class window_tuner final : public autotuner {
 public:
  window_tuner(tuning_options o, const concurrency_limits& of);

  bool due(std::uint64_t batches) const noexcept override { return batches >= due_at_; }

  concurrency_counts evaluate(const flow_statistics& now) override;

 private:
  static constexpr std::uint64_t least_window_ns = 200'000'000;

  static std::uint64_t full_slots(const flow_statistics& f);
  void begin(const flow_statistics& now);

  static constexpr std::uint64_t window_batches = 20;   // fewer batches cannot measure a share of 2 % of the time

  const tuning_options options_;
  notice_outlet* const notices_;
  tuning_search search_;
  flow_statistics before_{};
  bool begun_ = false;
  std::uint64_t due_at_ = 1;
};

/// The rule that tuning() returns.
class window_tuning final : public tuning_rule {
 public:
  explicit window_tuning(tuning_options o);
  concurrency_counts max(const concurrency_counts& requested) const override;
  owner<autotuner> start(const concurrency_limits& of_session) const override;

 private:
  const tuning_options options_;
};

}   // namespace detail

/// Returns a rule for session_options::tuning. Sessions that share a rule are tuned separately. Throws setup_error if
/// an option is below its minimum.
std::shared_ptr<const tuning_rule> tuning(tuning_options o = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/tune/impl/tuning.inl>
#endif
