// The options of a session.
//
//   mr::session run{std::move(flow), {.epochs = 90, .threads = 8, .memory_bytes = std::size_t{8} << 30}};
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/base/notice.hpp>
#include <millrace/flow/diagnose.hpp>
#include <millrace/item/on_damage.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/world.hpp>
#include <millrace/measure/values/run_stats.hpp>
#include <millrace/run/executor.hpp>

#include <condition_variable>   // for std::chrono's durations, because <chrono> costs more compile time
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// An unlimited number of epochs, or of batches in an epoch.
inline constexpr std::uint64_t endless = ~std::uint64_t{0};

/// Defines when a session reports a stall of its run. The report shows the wait of each stage, and never ends the run.
struct stall_options {
  /// Minimum duration of a stall; 0 disables the reports. By default, a stall is a step of the session's start, or a
  /// wait in next(), that lasts at least 10 s. If you set `after`, a training step that lasts at least `after` is a
  /// stall, too.
  std::optional<std::chrono::nanoseconds> after{};

  /// Returns `after`, or its default.
  std::chrono::nanoseconds least() const { return after.value_or(std::chrono::seconds(10)); }
};

namespace detail {
class row_feed;
class run_core;
struct row_feed_options;
}   // namespace detail

/// The base class of row_storage (adapt/feeders/row_storage.hpp). Derive your own storage from row_storage, not from
/// this class.
class row_provider {
 public:
  virtual ~row_provider() = default;
  /// Returns the statistics of the rows, for reports; empty without statistics. Any thread may call this function.
  virtual std::string describe() const { return {}; }

 private:
  friend class detail::run_core;
  /// Returns the rows of one session. `self` is this object.
  virtual detail::owner<detail::row_feed> new_feed(const detail::row_feed_options& of,
                                                   std::shared_ptr<row_provider> self) = 0;
};

class tuning_rule;   // mr::tuning() of tune/tuning.hpp returns a tuning_rule

/// How a session runs: epochs, threads, memory, ranks and resume point.
struct session_options {
  std::uint64_t epochs = 1;
  std::optional<std::uint64_t> epoch_batches{};   ///< batches of an epoch, or `endless`; default: one pass
  /// Number of workers. With 0, everything runs inside next() on the calling thread, for debugging. If there are more
  /// workers than cores, the available CPU time limits the number of workers that run at the same time. Workers that
  /// wait in a callable do not count. The default is one less than the usable cores (affinity, cgroup quota), but at
  /// least 1. If several processes of a run share a machine, each uses an equal share of the cores. The default of
  /// `memory_bytes` is divided likewise.
  std::optional<unsigned> threads{};
  /// Your executor, whose threads run the workers: a pool, or mr::tbb_executor(arena) of adapt/tbb.hpp. The session
  /// uses at most `threads` threads of the executor at a time, also with tuning. If `threads` is not set, the session
  /// uses at most concurrency() threads. If `executor` is null, oneTBB's threads run the workers.
  std::shared_ptr<millrace::executor> executor{};
  unsigned io_threads = 4;   ///< number of threads that read shards
  /// Binds workers and I/O threads to the cores of the device's NUMA node. The session does not use the cores of other
  /// nodes, and the default of `threads` does not count them. No effect if the machine has one node, or if the device
  /// is the host.
  bool threads_near_device = false;
  std::optional<std::size_t> memory_bytes{};   ///< memory budget; default: a quarter of the usable memory
  /// Maximum bytes of samples that are read and not yet claimed by a worker. The default is 256 MiB, but at most a
  /// quarter of the memory budget. The limit is 64 MiB at first. If the workers wait because the storage pauses, the
  /// limit grows, up to this maximum.
  std::optional<std::size_t> read_ahead_bytes{};
  /// Slots in addition to those that prefetch() and to_device() request. Set this to the number of batches that your
  /// loop keeps in addition to the current batch.
  std::size_t extra_slots = 0;
  /// Receives all notices of the session: its start, losses, stalls, tuning (base/notice.hpp). By default, each notice
  /// is printed to stderr as a line. mr::quiet prints only notices that require attention.
  notice_function notice{};
  /// Set this if other threads release batches. If batches in use occupy all slots, next() then waits until a thread
  /// releases a batch. By default, next() throws setup_error in this case.
  bool leases_released_by_other_threads = false;
  /// Rank and world size. If a run has several ranks and no index, epoch_batches must be set. By default, the world is
  /// this one process, and the session throws setup_error if a launcher started several processes. In this case, set
  /// world_from_launcher(). If this process must read all samples, set single_process instead.
  std::optional<millrace::world> world{};
  std::string resume{};   ///< resume_text() of the last batch that was used; empty to start a run
  /// The first epoch of a run that has no resume point. Without an index, a value above 0 requires that an epoch is one
  /// pass over the source.
  std::uint64_t first_epoch = 0;
  /// Accepts a resume point that was saved when the data set had fewer shards or samples; requires an index. The run
  /// continues with the next epoch, over all samples. The rest of the interrupted epoch is skipped, so that no epoch
  /// repeats a sample.
  bool grown = false;
  /// Number of lanes (interleaved parts of the order). Each lane is shuffled with its share of the window. With an
  /// index, the default depends on the numbers of samples and shards and on the window. Without an index, the default
  /// is one lane for each rank, and other numbers must be multiples of the number of ranks. If a source without an
  /// index has fewer shards than lanes, the session uses fewer lanes: the greatest divisor of `lanes` that is not above
  /// the number of shards.
  std::optional<std::size_t> lanes{};
  damage_options on_damage{};   ///< policy for damaged samples; by default the first damaged sample ends the run
  /// If set, other machines compute rows if the workers are too slow. Set the result of mr::feeders()
  /// (adapt/feeders.hpp), or your own row_storage (adapt/feeders/row_storage.hpp). Rows, order and resume points do not
  /// depend on this option. The source must have an index. If `rows` is null, the workers compute all rows.
  std::shared_ptr<row_provider> rows{};
  stall_options stalls{};                        ///< the condition for a report of a stalled run
  std::shared_ptr<const tuning_rule> tuning{};   ///< mr::tuning() of tune/tuning.hpp starts with `threads` and
                                                 ///< `io_threads` and changes them; null for fixed numbers
};

}}   // namespace millrace
