// Moves the seats of workers and readers to just enough for the step, while the session runs.
//
//   #include <millrace/tuning.hpp>
//   mr::session run{std::move(flow), {.epochs = 90, .tuning = mr::tuning()}};
//   mr::tuning({.tell = [&](const mr::tuning_decision& d) { log.message(d.text()); }})      // else to stderr
//
// It begins with session_options::threads and io_threads, looks at windows of at least `window_batches` and 0.2 s, and
// makes `moves` at most until it has settled on seats with which the trainer waits for data less than `data_wait` of
// its time, or on those beyond which more gain nothing (tuning_search.hpp). Order, draws and digests stay the same.
// Memory stays within the session's budget: slots are made for all workers, and there are no more reads at a time than
// the budget has room for. A stage whose maps block keeps the threads that it was given. With `threads = 0` nothing is
// tuned. It is for training runs: a benchmark wants its seats to stand still.
// Errors: setup_error for 0 of anything; what `tell` throws comes out of next(), and no batch is lost. Threads: the
// trainer's, in next().
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/tune/tuning_search.hpp>

#include <cstdio>
#include <functional>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// What tuning() may be told.
struct tuning_options {
  std::size_t most_workers = 0;        ///< 0: the usable cores
  std::size_t most_reads = 32;         ///< at a time; each is a thread
  double data_wait = 0.02;             ///< share of the trainer's time
  std::uint64_t window_batches = 20;   ///< at least 20
  std::size_t moves = 5;
  std::function<void(const tuning_decision&)> tell{};   ///< of each decision; none: a line on stderr
};

/// A template only so that including it costs little.
template <class = void>
class basic_window_tuner final : public autotuner {
 public:
  basic_window_tuner(tuning_options o, const concurrency_limits& of)
      : options_(std::move(o)),
        search_({.open = of.open, .most = of.most, .data_wait = options_.data_wait, .moves = options_.moves}) {}

  bool due(std::uint64_t batches) const noexcept override { return batches >= due_at_; }

  concurrency_counts look(const flow_figures& now) override {
    if (now.batches < 1 + full_slots(now)) {
      due_at_ = 1 + full_slots(now);   // the rings have filled by then
    } else if (!begun_) {
      begin(now);
    } else if (const flow_figures window = now - before_; window.wall_ns < least_window_ns) {
      due_at_ = now.batches + window.batches;   // looking costs more than such batches do
    } else {
      const concurrency_counts was = search_.open();
      if (std::optional<tuning_decision> d = search_.look(tuning_window_of(window))) {
        d->batches = now.batches;
        tell(*d);
      }
      if (search_.open() == was) {
        begin(now);
      } else {
        begun_ = false;
        due_at_ = now.batches + full_slots(now);   // what was made with the seats before is used up then
      }
    }
    return search_.open();
  }

 private:
  static constexpr std::uint64_t least_window_ns = 200'000'000;

  static std::uint64_t full_slots(const flow_figures& f) {
    return std::max<std::uint64_t>(4, f.host_slots + f.device_slots);
  }
  void begin(const flow_figures& now) {
    begun_ = true;
    before_ = now;
    due_at_ = now.batches + options_.window_batches;
  }
  void tell(const tuning_decision& d) const {
    if (options_.tell) options_.tell(d);
    else std::fprintf(stderr, "millrace: %s\n", d.text().c_str());
  }

  const tuning_options options_;
  tuning_search search_;
  flow_figures before_{};
  bool begun_ = false;
  std::uint64_t due_at_ = 1;
};

/// The rule that tuning() gives. A template as above.
template <class = void>
class basic_window_tuning final : public tuning_rule {
 public:
  explicit basic_window_tuning(tuning_options o) : options_(std::move(o)) {
    if (options_.most_reads == 0 || options_.window_batches < 20 || options_.moves == 0 || !(options_.data_wait > 0))
      throw setup_error("tuning needs reads, moves, a share of data wait above 0, and windows of at least 20 batches",
                        "Leave out what you do not need to set");
  }
  concurrency_counts most(const concurrency_counts& asked) const override {
    const std::size_t workers = options_.most_workers > 0 ? options_.most_workers : usable_cores();
    return {std::max(asked.workers, workers), std::max(asked.reads, options_.most_reads)};
  }
  std::unique_ptr<autotuner> start(const concurrency_limits& of_session) const override {
    return std::make_unique<basic_window_tuner<>>(options_, of_session);
  }

 private:
  const tuning_options options_;
};

/// For session_options::tuning; each session that gets it is tuned by itself.
template <class = void>
std::shared_ptr<const tuning_rule> tuning(tuning_options o = {}) {
  return std::make_shared<basic_window_tuning<>>(std::move(o));
}

}}  // namespace millrace
