// What a session may be told, and what it tells about itself.
//
//   mr::session run{std::move(flow), {.epochs = 90, .threads = 8, .memory_bytes = std::size_t{8} << 30}};
//   mr::run_stats s = run.stats();       // any thread, any time
#pragma once

#include <millrace/flow/diagnose.hpp>
#include <millrace/item/tally.hpp>
#include <millrace/run/ranks.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace::inline MILLRACE_ABI {

/// Leaves the number of workers to the machine: usable cores (affinity, cgroup quota) less one for the trainer.
inline constexpr int automatic = -1;
/// Epochs, or batches of an epoch, without end.
inline constexpr std::uint64_t endless = ~std::uint64_t{0};

/// Tells who waits for whom when a run stands still. It never ends anything.
struct stall_watch {
  std::uint64_t after_ns = 0;   ///< in next(), or in a step, for so long; 0: nobody watches
  std::function<void(const std::string&)> tell{};   ///< on a thread of its own, once for each stall; none: to stderr
};

class tuning_rule;   // run/seat_tuner.hpp

struct session_options {
  std::uint64_t epochs = 1;
  std::uint64_t epoch_batches = 0;    ///< batches of an epoch; 0: one exact pass through the data; or endless
  int threads = automatic;            ///< workers; 0 runs everything inline on the caller, for debugging
  unsigned io_threads = 4;            ///< that many parts (shards) are read at a time
  std::size_t memory_bytes = 0;       ///< budget for everything held; 0: a quarter of the usable memory
  std::size_t read_ahead_bytes = 0;   ///< of samples read and not yet claimed; 0: 256 MiB, or a quarter of the budget
  bool announce = true;               ///< one line on stderr at start: threads, slots, bytes
  bool released_elsewhere = false;    ///< other threads release batches, so next() may wait for a leased slot
  millrace::ranks ranks{};            ///< of several processes; without an index they need epoch_batches
  std::string resume{};               ///< to_text(b.position()) of the last batch that counts; empty: from the start
  std::size_t lanes = 48;             ///< a multiple of every number of ranks that the run may have; without an index
                                      ///< the greatest divisor of it that the number of parts (shards) allows
  stall_watch stalls{};
  std::shared_ptr<const tuning_rule> tuning{};   ///< mr::tuning() of run/tuning.hpp: begins with `threads` and
                                                 ///< `io_threads`, and moves them; none: they stay as they are
  diagnose::option_is_threads num_workers{}, workers{};   ///< say how they are called
};

/// Of one source of a mix.
struct source_count {
  std::string name{};
  std::uint64_t samples = 0;   ///< delivered to this rank
};

/// Counters since the start of the session.
struct run_stats {
  std::uint64_t batches = 0, samples = 0;   ///< delivered
  std::uint64_t wait_ns = 0;                ///< the trainer waited in next()
  std::uint64_t step_ns = 0;                ///< from a batch to the next call of next(); not between epochs
  std::uint64_t first_batch_ns = 0;         ///< from the start to the first batch; not in wait_ns
  std::uint64_t worker_busy_ns = 0;         ///< of all workers of the last segment together
  std::uint64_t dropped_last = 0;           ///< samples that epochs left out at their ends; 0 where not known
  std::uint64_t digest = 0;                 ///< b.position().digest of the last batch; 0 where there are no positions
  std::uint64_t samples_read = 0, bytes_read = 0, read_busy_ns = 0;
  std::size_t workers = 0, io_threads = 0;
  std::size_t host_slots = 0, ready_slots = 0, slot_bytes = 0;
  std::vector<counted> counts{};   ///< what was passed over or accepted, by name (item/tally.hpp)
  std::vector<source_count> sources{};   ///< of a mix (run/mix.hpp), in its order

  /// Share of the trainer's time spent waiting for data, without the first batch.
  double data_wait_share() const noexcept {
    const double all = static_cast<double>(wait_ns) + static_cast<double>(step_ns);
    return all > 0 ? static_cast<double>(wait_ns) / all : 0;
  }
};

}  // namespace millrace::inline MILLRACE_ABI
