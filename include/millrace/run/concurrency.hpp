// The seats of a session: how many there are, how many are open, and who decides on that while it runs.
//
//   concurrency seats(options, workers);
//   seats.most_workers();  seats.most_reads();           // what the session makes room for
//   seats.open(components);                              // before they start: as many as were asked for
//   seats.start(reads_that_memory_allows);               // once that is known
//   if (seats.due(batches) && seats.tune(figures, components)) ...      // true: some were opened or closed
//
// Without a tuning_rule there are as many as were asked for, all open. Errors: the rule's. Threads: the trainer's.
#pragma once

#include <millrace/run/session_options.hpp>
#include <millrace/tune/autotuner.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI {

/// A template only so that including it costs little.
template <class = void>
class basic_concurrency {
 public:
  basic_concurrency(const session_options& o, unsigned workers) : rule_(workers > 0 ? o.tuning : nullptr) {
    limits_.open = {workers, workers > 0 ? std::max(1U, o.io_threads) : 0};
    limits_.most = rule_ ? rule_->most(limits_.open) : limits_.open;
  }

  unsigned most_workers() const noexcept { return static_cast<unsigned>(limits_.most.workers); }
  unsigned most_reads() const noexcept { return static_cast<unsigned>(limits_.most.reads); }

  void open(const std::vector<pipeline_node*>& all) const {
    if (!rule_) return;
    for (pipeline_node* c : all) c->open_seats(limits_.open);
  }
  void start(std::size_t reads_within_memory) {
    limits_.most.reads = std::clamp(reads_within_memory, limits_.open.reads, limits_.most.reads);
    if (rule_) tuner_ = rule_->start(limits_);
  }

  std::string describe() const {
    if (!rule_) return {};
    return " (tuned: up to " + std::to_string(most_workers()) + " and " + std::to_string(most_reads()) + ")";
  }
  bool due(std::uint64_t batches) const noexcept { return tuner_ && tuner_->due(batches); }
  bool tune(const flow_figures& since_start, const std::vector<pipeline_node*>& all) {
    const concurrency_counts wanted = tuner_->look(since_start);
    if (wanted == limits_.open) return false;
    limits_.open = wanted;
    open(all);
    return true;
  }

 private:
  const std::shared_ptr<const tuning_rule> rule_;
  concurrency_limits limits_;
  std::unique_ptr<autotuner> tuner_;
};
using concurrency = basic_concurrency<>;

}}  // namespace millrace
