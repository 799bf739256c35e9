// Definitions for metrics.hpp.
#pragma once

#include <millrace/train/metrics.hpp>

#include <limits>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE metrics::metrics(metrics_options options) : options_(std::move(options)), since_(options_.now()) {
  if (options_.every == 0)
    throw setup_error("metrics_options::every is 0", "Set it to the number of steps per row, at least 1");
  if (options_.device) options_.device->claim();
}

MILLRACE_INLINE accuracy_metric metrics::accuracy(std::string_view name, accuracy_options options) {
  if (options.top_k == 0)
    throw setup_error("accuracy_options::top_k is 0", "Set 1 to count only the most likely class");
  auto& metric = named(name, kind::accuracy);
  metric.top_k = options.top_k;
  return accuracy_metric(metric);
}

MILLRACE_INLINE bool metrics::maybe_log(log_point at, log& out) {
  last_ = at;
  const bool due = ++steps_since_ % options_.every == 0;
  bool handed_over = false;
  if (on_device()) {
    handed_over = write_arrived(out);
    if (due && !start_hand_over()) ++log_skipped_;
    throw_bad_labels();
  } else if (due) {
    handed_over = write_at_once(out);
    if (!handed_over) ++log_skipped_;
  }
  return handed_over;
}

MILLRACE_INLINE void metrics::finish(log& out) {
  if (on_device()) {
    write_all(out);
    if (pending_.empty()) {   // else the log is closed
      if (!start_hand_over())
        throw setup_error("metrics::finish() was called while the step's stream is being captured",
                          "Call it after cudaStreamEndCapture");
      pending_.back().unless_empty = true;
      write_all(out);
    }
    throw_bad_labels();
    return;
  }
  if (empty() || write_at_once(out)) return;
  out.flush();
  if (write_at_once(out)) return;
  if (out.push(read_now())) restart();
}

MILLRACE_INLINE void metrics::finish(log& out, log_point at) {
  last_ = at;
  finish(out);
}

MILLRACE_INLINE row metrics::read_now() const {
  std::vector<metric_totals> all = host_totals();
  if (on_device()) merge_device(all, options_.device->read_now().data());
  const instant now = options_.now();
  return row_of(all, {.at = last_, .since = since_, .until = now});
}

MILLRACE_INLINE void metrics::restart() {
  if (on_device()) options_.device->restart();
  restart_host(options_.now());
}

MILLRACE_INLINE std::vector<metric_totals> metrics::host_totals() const {
  std::vector<metric_totals> all;
  for (const auto& m : metrics_) all.push_back(m.totals);
  return all;
}

MILLRACE_INLINE void metrics::merge_device(std::vector<metric_totals>& all, const metric_totals* device) const {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (metrics_[i].device) all[i].merge(device[metrics_[i].on_device]);
}

MILLRACE_INLINE row metrics::row_of(const std::vector<metric_totals>& all, const window& w) const {
  const double seconds = detail::to_seconds(w.until.steady_ns - w.since.steady_ns);
  row r{.step = w.at.step, .epoch = w.at.epoch, .unix_ns = w.until.unix_ns};
  for (std::size_t i = 0; i < all.size(); ++i) add_values(r, metrics_[i], all[i], seconds);
  return r;
}

MILLRACE_INLINE void metrics::restart_host(instant now) {
  for (auto& m : metrics_) m.totals = {};
  steps_since_ = 0;
  since_ = now;
}

MILLRACE_INLINE bool metrics::write_at_once(log& out) {
  const instant now = options_.now();
  if (!out.offer(row_of(host_totals(), {.at = last_, .since = since_, .until = now}))) return false;
  restart_host(now);
  return true;
}

MILLRACE_INLINE bool metrics::start_hand_over() {
  const instant now = options_.now();
  pending_row next{.host = host_totals(), .of = {.at = last_, .since = since_, .until = now}};
  if (!options_.device->hand_over()) return false;
  pending_.push_back(std::move(next));
  restart_host(now);
  return true;
}

MILLRACE_INLINE bool metrics::write_arrived(log& out) {
  bool any = false;
  while (!pending_.empty()) {
    pending_row& first = pending_.front();
    if (!first.finished) {
      const metric_totals* const arrived = options_.device->oldest();
      if (!arrived) break;
      make_row(first, arrived);
    }
    if (!out.offer(*first.finished)) break;
    release_first();
    any = true;
  }
  return any;
}

MILLRACE_INLINE void metrics::write_all(log& out) {
  for (; !pending_.empty(); release_first()) {
    pending_row& first = pending_.front();
    bool any = true;
    if (!first.finished) any = make_row(first, options_.device->wait_for_oldest());
    if ((first.unless_empty && !any) || out.offer(*first.finished)) continue;
    out.flush();
    if (!out.offer(*first.finished) && !out.push(*first.finished)) return;   // the log is closed
  }
}

MILLRACE_INLINE bool metrics::make_row(pending_row& r, const metric_totals* arrived) {
  merge_device(r.host, arrived);
  bool any = false;
  for (std::size_t i = 0; i < r.host.size(); ++i) {
    any = any || !r.host[i].empty();
    if (r.host[i].bad_labels > 0 && !bad_labels_)
      bad_labels_ = data_error(std::to_string(r.host[i].bad_labels) + " labels of '" + metrics_[i].name +
                                   "' were out of range for the logits, in the steps up to " +
                                   std::to_string(r.of.at.step),
                               "Use labels from 0 to classes - 1: check the data set and the size of the last "
                               "layer");
  }
  r.finished = row_of(r.host, r.of);
  return any;
}

MILLRACE_INLINE void metrics::release_first() noexcept {
  options_.device->release_oldest();
  pending_.pop_front();
}

MILLRACE_INLINE void metrics::throw_bad_labels() {
  if (!bad_labels_) return;
  const data_error labels_error = *std::exchange(bad_labels_, std::nullopt);
  throw labels_error;
}

MILLRACE_INLINE detail::named_metric& metrics::named(std::string_view name, kind is) {
  for (auto& m : metrics_)
    if (m.name == name) {
      if (m.is != is)
        throw setup_error("the metric '" + printable(name) + "' already exists with another kind",
                          "Choose another name");
      return m;
    }
  for (const std::string_view reserved : {"", "step", "epoch", "time", "nonfinite", "message"})
    if (name == reserved)
      throw setup_error("'" + std::string(name) + "' is reserved and cannot be the name of a metric",
                        "Choose another name");
  detail::named_metric metric{.name = std::string(name), .is = is};
  if (options_.device && (is == kind::mean || is == kind::accuracy)) {
    metric.on_device = options_.device->add_metric();
    metric.device = options_.device.get();
  }
  metrics_.push_back(std::move(metric));
  return metrics_.back();
}

MILLRACE_INLINE void metrics::add_values(row& r, const detail::named_metric& m, const metric_totals& s,
                                         double seconds) {
  const auto ratio = [](double part, double total) {
    return total > 0 ? part / total : std::numeric_limits<double>::quiet_NaN();
  };
  const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
  r.nonfinite += s.nonfinite;
  switch (m.is) {
    case kind::mean:
      if (s.weight > 0 || s.nonfinite > 0) r.values.push_back({m.name, ratio(s.sum, s.weight)});
      break;
    case kind::accuracy:
      if (s.count == 0) break;
      r.values.push_back(
          {m.top_k == 1 ? m.name : m.name + "1", ratio(number(s.correct_1), number(s.count)), quantity_unit::share});
      if (m.top_k > 1)
        r.values.push_back(
            {m.name + std::to_string(m.top_k), ratio(number(s.correct_k), number(s.count)), quantity_unit::share});
      break;
    case kind::count:
      r.values.push_back({m.name, number(s.count), quantity_unit::count});
      if (seconds > 0) r.values.push_back({m.name + "_per_s", number(s.count) / seconds, quantity_unit::per_second});
      break;
    case kind::share:
      if (seconds > 0) r.values.push_back({m.name, number(s.count) * 1e-9 / seconds, quantity_unit::share});
      break;
  }
}

MILLRACE_INLINE bool metrics::empty() const noexcept {
  for (const auto& m : metrics_)
    if (!m.totals.empty()) return false;
  return true;
}

}}   // namespace millrace
