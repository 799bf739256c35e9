// The figures of a run as its engine puts them together, and those of its warm-up, which reports leave out.
//
//   complete(figures, process_figures::now() - at_start);      // once every stage has added its own
//   warm_ups.passed(batches, [&] { return figures(); });       // after each delivery
//   flow_figures window = warm_ups.without(figures());
//
// The warm-up is the first 16 batches of a run that had 64 at least, of a shorter one the first 4, or the first; what
// came before seats were opened or closed is part of it in a run of four times as many batches.
// Errors: none. Threads: passed() by the trainer, the rest by any.
#pragma once

#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/process_figures.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI {

/// What only all stages together say. A template only so that including it costs little.
template <class = void>
void complete(flow_figures& f, const process_figures& process) {
  double items_per_sample = 1;
  for (std::size_t i = f.stages.size(); i-- > 0;) {
    stage_figures& s = f.stages[i];
    // So far it is items per item behind the stage.
    s.items_per_sample = items_per_sample *= s.items_per_sample;
  }
  f.usable_cores = usable_cores();
  f.process_cpu_ns = process.cpu_ns;
  f.throttled_ns = process.throttled_ns;
  f.run_delay_ns = process.run_delay_ns;
  const stage_figures* const read = f.find(stage_kind::read);
  if (!read || !process.storage_bytes || read->bytes == 0) return;
  // Some file systems (FUSE, 9p) do not have their reads counted. What came slower than memory gives it was no memory.
  const double bytes_per_ns = static_cast<double>(read->bytes) / (static_cast<double>(read->busy_ns) + 1);
  const bool counted = *process.storage_bytes * 20 >= read->bytes || bytes_per_ns > 0.2;
  if (counted) f.storage_bytes = std::min(*process.storage_bytes, read->bytes);
}

/// The figures as they were when the run had warmed up.
class warm_up_figures {
 public:
  template <class Figures>
  void passed(std::uint64_t batches, const Figures& figures_now) {
    if (batches != 1 && batches != 4 && batches != 16) return;
    restart(figures_now());
  }
  /// Something was set otherwise: what came before is warm-up.
  template <class Figures>
  void restart(Figures now) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(now));
  }
  template <class = void>
  flow_figures without(flow_figures f) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = all_.size(); i-- > 0;)
      if (f.batches >= 4 * all_[i].batches) return std::move(f) - all_[i];
    return f;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<flow_figures> all_;
};

}}  // namespace millrace
