// Finds the smallest numbers of workers and reads that suffice for the training step, while a session runs.
//
//   #include <millrace/tuning.hpp>
//   mr::session run{std::move(flow), {.epochs = 90, .tuning = mr::tuning()}};
//
// Tuning begins with session_options::threads and io_threads. Tuning evaluates windows (parts of the run) of at least
// 20 batches and 0.2 s, and changes the numbers at most five times. Tuning ends when the wait for data is less than
// `data_wait` of the training time, or when more workers and reads gain nothing (tuning_search.hpp). Order, random
// numbers and digests do not change.
// Memory stays within the session's budget. At the start, the session creates slots (memory of batches) for the maximum
// number of workers. The number of concurrent reads is limited by the space in the budget.
// The number of threads of a blocking map does not change. With `threads = 0`, nothing is tuned.
// Use tuning for training runs only; a benchmark needs fixed numbers.
// The session reports each decision as a notice of kind `tuning`.
// Errors: setup_error for an option below its minimum. Threads: the training thread, in next().
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/tune/autotuner.hpp>
#include <millrace/tune/tuning_search.hpp>

#include <optional>

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
