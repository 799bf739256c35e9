// Definitions for concurrency.hpp.
#pragma once

#include <millrace/run/concurrency.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE concurrency::concurrency(const session_options& o, unsigned workers, notice_outlet& notices)
    : rule_(workers > 0 ? o.tuning : nullptr) {
  limits_.notices = &notices;
  limits_.open = {workers, workers > 0 ? std::max(1U, o.io_threads) : 0};
  limits_.max = rule_ ? rule_->max(limits_.open) : limits_.open;
  if (o.executor) limits_.max.workers = workers;   // the other threads of the executor are for the user
}

MILLRACE_RARE void concurrency::open(const std::vector<pipeline_node*>& all) const {
  if (!rule_) return;
  for (pipeline_node* c : all) c->set_active(limits_.open);
}

MILLRACE_RARE void concurrency::start(std::size_t reads_within_memory) {
  limits_.max.reads = std::clamp(reads_within_memory, limits_.open.reads, limits_.max.reads);
  if (rule_) tuner_ = rule_->start(limits_);
}

MILLRACE_RARE std::string concurrency::describe() const {
  if (!rule_) return {};
  return " (tuned: up to " + std::to_string(max_workers()) + " and " + std::to_string(max_reads()) + ")";
}

MILLRACE_RARE bool concurrency::tune(const flow_statistics& since_start, const std::vector<pipeline_node*>& all) {
  const concurrency_counts counts = tuner_->evaluate(since_start);
  if (counts == limits_.open) return false;
  limits_.open = counts;
  open(all);
  return true;
}

}}}   // namespace millrace::detail
