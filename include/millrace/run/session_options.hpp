// What a session may be told.
//
//   mr::session run{std::move(flow), {.epochs = 90, .threads = 8, .memory_bytes = std::size_t{8} << 30}};
#pragma once

#include <millrace/flow/diagnose.hpp>
#include <millrace/measure/run_stats.hpp>
#include <millrace/order/world.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Leaves the number of workers to the machine: usable cores (affinity, cgroup quota) less one for the trainer.
inline constexpr int automatic = -1;
/// Epochs, or batches of an epoch, without end.
inline constexpr std::uint64_t endless = ~std::uint64_t{0};

/// Tells who waits for whom when a run stands still. It never ends anything.
struct stall_watch {
  std::uint64_t after_ns = 0;   ///< in next(), or in a step, for so long; 0: nobody watches
  std::function<void(const std::string&)> tell{};   ///< on a thread of its own, once for each stall; none: to stderr
};

class tuning_rule;   // tune/autotuner.hpp

struct session_options {
  std::uint64_t epochs = 1;
  std::uint64_t epoch_batches = 0;    ///< batches of an epoch; 0: one exact pass through the data; or endless
  int threads = automatic;            ///< workers; 0 runs everything inline on the caller, for debugging
  unsigned io_threads = 4;            ///< that many shards are read at a time
  std::size_t memory_bytes = 0;       ///< budget for everything held; 0: a quarter of the usable memory
  std::size_t read_ahead_bytes = 0;   ///< of samples read and not yet claimed; 0: 256 MiB, or a quarter of the budget
  bool announce = true;               ///< one line on stderr at start: threads, slots, bytes
  bool leases_released_by_other_threads = false;   ///< so that next() may wait for a leased slot
  millrace::world world{};            ///< of several processes; without an index they need epoch_batches
  std::string resume{};               ///< to_text(b.position()) of the last batch that counts; empty: from the start
  std::size_t lanes = 48;             ///< a multiple of every number of ranks that the run may have; without an index
                                      ///< the greatest divisor of it that the number of shards allows
  stall_watch stalls{};
  std::shared_ptr<const tuning_rule> tuning{};   ///< mr::tuning() of tune/tuning.hpp: begins with `threads` and
                                                 ///< `io_threads`, and moves them; none: they stay as they are
  diagnose::option_is_threads num_workers{}, workers{};   ///< say how they are called
};

}}  // namespace millrace
