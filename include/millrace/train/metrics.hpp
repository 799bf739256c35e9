// Means, accuracies and counts: summed inside the step and handed to the log every few steps, without waiting.
//
//   mr::metrics m({.every = 50});
//   auto loss = m.mean("loss");
//   auto top = m.accuracy("top", {.top_k = 5});            // the row holds "top1" and "top5"
//   for (auto& b : run) {
//     auto [step_loss, logits] = train_step(b);             // a number and a view [B, C]
//     loss.add(step_loss, b.size());  top.add(logits, b.get<&example::label>());  m.count("samples", b.size());
//     m.maybe_log(b.step(), out);                           // a row at each 50th call; it also has "samples_per_s"
//   }
//   m.finish(out);                                          // the rest
//
// Shapes: values [B] and logits [B, C] are f32, f16 or bf16, labels [B] are i32 or i64. Sums are f64, counts u64, so a
// row is exact for the steps since the row before it.
// When the log's queue is full, the row waits for the next interval. The sums go on and nothing is lost;
// log_skipped() counts these intervals.
// NaN and infinite values are kept out of the sums and counted; the row shows them as `nonfinite`. A row of logits with
// a NaN counts as wrong, and as nonfinite.
// On a GPU: set `.device = mr::cuda_metric_sums()` (metrics.cuh) and add views of its memory with `.stream`. Values of
// the host may be mixed in. Nothing waits: a later maybe_log() writes the row, with the step that it belongs to. An
// interval is skipped if too many rows are still on their way. Only finish(), read_now() and the destructor wait.
// Without `.device` views of GPU memory are refused.
// Errors: setup_error for names and shapes; data_error for a label that is not a class. On the host, add() throws it.
// On a GPU, the maybe_log() or finish() that reads the row throws it; the row still shows the other labels.
// Threads: those of the step. Lifetime: the handles point into the metrics, which must outlive them.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/train/device_sums.hpp>
#include <millrace/train/log.hpp>
#include <millrace/train/metric_handles.hpp>

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The interval, the clock and the device of metrics.
struct metrics_options {
  std::uint64_t every = 50;            ///< steps between rows
  time_source now = detail::system_instant;
  std::shared_ptr<device_sums> device{};   ///< for views of GPU memory
};

/// Which accuracies a metric counts.
struct accuracy_options {
  std::size_t top_k = 1;               ///< above 1: counts top-1 and top-k in one pass
};

/// The step and epoch that a row belongs to.
struct log_point {
  std::uint64_t step = 0;
  std::optional<std::uint64_t> epoch{};
};

/// mr::metrics: the sums of all metrics of one loop.
class metrics {
 public:
  /// Throws setup_error if `every` is 0 or if other metrics use the same `device`.
  explicit metrics(metrics_options options = {}) : options_(std::move(options)), since_(options_.now()) {
    if (options_.every == 0)
      throw setup_error("metrics_options::every is 0", "Give the number of steps between two rows, at least 1");
    if (options_.device) options_.device->claim();
  }
  metrics(metrics&&) = default;

  /// Returns the handle of a weighted mean. Throws setup_error for a reserved name or a name of another kind.
  mean_metric mean(std::string_view name) { return mean_metric(named(name, kind::mean)); }
  /// Returns the handle of an accuracy. Throws setup_error as mean() does, and for a top_k of 0.
  accuracy_metric accuracy(std::string_view name, accuracy_options options = {}) {
    if (options.top_k == 0) throw setup_error("accuracy_options::top_k is 0", "1 counts the most likely class only");
    auto& metric = named(name, kind::accuracy);
    metric.top_k = options.top_k;
    return accuracy_metric(metric);
  }
  /// Adds `n` to a count. The row holds the count and its rate, "<name>_per_s".
  void count(std::string_view name, std::uint64_t n) { named(name, kind::count).totals.count += n; }
  /// Adds `ns` to a time. The row holds its share (0..1) of the time since the row before.
  void spent_ns(std::string_view name, std::uint64_t ns) { named(name, kind::share).totals.count += ns; }

  /// Writes a row to the log when one is due; call it once per step. Returns true if the log took a row.
  bool maybe_log(log_point at, log& out) {
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
  /// Does the same, with the epoch of the call before.
  bool maybe_log(std::uint64_t step, log& out) { return maybe_log(log_point{.step = step, .epoch = last_.epoch}, out); }

  /// Writes what was summed since the last row, if anything. Waits for the GPU, and up to the log's drain_ns for space
  /// in its queue.
  void finish(log& out) {
    if (on_device()) {
      write_all(out);
      if (under_way_.empty()) {   // else the log is closed
        if (!start_hand_over())
          throw setup_error("metrics::finish() while the step's stream is being captured",
                            "Call it after cudaStreamEndCapture");
        under_way_.back().unless_empty = true;
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
  /// Does the same for a row at `at`.
  void finish(log& out, log_point at) {
    last_ = at;
    finish(out);
  }

  /// Returns the row of the sums so far and changes nothing. With sums on a GPU it waits for the step.
  row read_now() const {
    std::vector<detail::metric_totals> all = host_totals();
    if (on_device()) merge_device(all, options_.device->read_now().data());
    const instant now = options_.now();
    return row_of(all, {.at = last_, .since = since_, .until = now});
  }

  /// Resets all sums. Rows that are on their way from a GPU are still written.
  void restart() {
    if (on_device()) options_.device->restart();
    restart_host(options_.now());
  }

  /// Returns the number of intervals whose row had to wait for the next one.
  std::uint64_t log_skipped() const noexcept { return log_skipped_; }

 private:
  using kind = detail::named_metric::kind;

  /// The steps that a row covers.
  struct window {
    log_point at{};
    instant since{}, until{};
  };
  /// A row whose sums on the device are on their way.
  struct row_under_way {
    std::vector<detail::metric_totals> host;
    window of;
    bool unless_empty = false;
    std::optional<row> made{};   // the row once its sums have arrived: it waits for space in the log
  };

  bool on_device() const noexcept { return options_.device && options_.device->used(); }

  std::vector<detail::metric_totals> host_totals() const {
    std::vector<detail::metric_totals> all;
    for (const auto& m : metrics_) all.push_back(m.totals);
    return all;
  }
  void merge_device(std::vector<detail::metric_totals>& all, const detail::metric_totals* device) const {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (metrics_[i].device) all[i].merge(device[metrics_[i].on_device]);
  }

  row row_of(const std::vector<detail::metric_totals>& all, const window& w) const {
    const double seconds = detail::to_seconds(w.until.steady_ns - w.since.steady_ns);
    row r{.step = w.at.step, .epoch = w.at.epoch, .unix_ns = w.until.unix_ns};
    for (std::size_t i = 0; i < all.size(); ++i) add_values(r, metrics_[i], all[i], seconds);
    return r;
  }

  void restart_host(instant now) {
    for (auto& m : metrics_) m.totals = {};
    steps_since_ = 0;
    since_ = now;
  }

  /// Writes a row of the host's sums alone. Returns false if the log's queue is full.
  bool write_at_once(log& out) {
    const instant now = options_.now();
    if (!out.offer(row_of(host_totals(), {.at = last_, .since = since_, .until = now}))) return false;
    restart_host(now);
    return true;
  }

  /// Requests the device's sums and keeps the host's sums until they come. Returns false if too many are under way.
  bool start_hand_over() {
    const instant now = options_.now();
    row_under_way next{.host = host_totals(), .of = {.at = last_, .since = since_, .until = now}};
    if (!options_.device->hand_over()) return false;
    under_way_.push_back(std::move(next));
    restart_host(now);
    return true;
  }

  bool write_arrived(log& out) {
    bool any = false;
    while (!under_way_.empty()) {
      row_under_way& first = under_way_.front();
      if (!first.made) {
        const detail::metric_totals* const arrived = options_.device->oldest();
        if (!arrived) break;
        make_row(first, arrived);
      }
      if (!out.offer(*first.made)) break;
      release_first();
      any = true;
    }
    return any;
  }

  void write_all(log& out) {
    for (; !under_way_.empty(); release_first()) {
      row_under_way& first = under_way_.front();
      bool any = true;
      if (!first.made) any = make_row(first, options_.device->wait_for_oldest());
      if ((first.unless_empty && !any) || out.offer(*first.made)) continue;
      out.flush();
      if (!out.offer(*first.made) && !out.push(*first.made)) return;   // the log is closed
    }
  }

  /// Returns true if the row holds anything.
  bool make_row(row_under_way& r, const detail::metric_totals* arrived) {
    merge_device(r.host, arrived);
    bool any = false;
    for (std::size_t i = 0; i < r.host.size(); ++i) {
      any = any || !r.host[i].empty();
      if (r.host[i].bad_labels > 0 && !bad_labels_)
        bad_labels_ = data_error(std::to_string(r.host[i].bad_labels) + " labels of '" + metrics_[i].name +
                                     "' were no class of the logits, in the steps up to " +
                                     std::to_string(r.of.at.step),
                                 "Labels are 0 .. classes - 1; check the data set and the size of the last layer");
    }
    r.made = row_of(r.host, r.of);
    return any;
  }

  void release_first() noexcept {
    options_.device->release_oldest();
    under_way_.pop_front();
  }

  void throw_bad_labels() {
    if (!bad_labels_) return;
    const data_error found = *std::exchange(bad_labels_, std::nullopt);
    throw found;
  }

  /// Returns the metric of that name. Allocates it on first use only.
  detail::named_metric& named(std::string_view name, kind is) {
    for (auto& m : metrics_)
      if (m.name == name) {
        if (m.is != is)
          throw setup_error("the metric '" + printable(name) + "' is already one of another kind",
                            "Choose another name");
        return m;
      }
    for (const std::string_view taken : {"", "step", "epoch", "time", "nonfinite", "message"})
      if (name == taken) throw setup_error("'" + std::string(name) + "' cannot name a metric", "Choose another name");
    detail::named_metric made{.name = std::string(name), .is = is};
    if (options_.device && (is == kind::mean || is == kind::accuracy)) {
      made.on_device = options_.device->add_metric();
      made.device = options_.device.get();
    }
    metrics_.push_back(std::move(made));
    return metrics_.back();
  }

  static void add_values(row& r, const detail::named_metric& m, const detail::metric_totals& s, double seconds) {
    const auto ratio = [](double part, double whole) {
      return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
    };
    const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
    r.nonfinite += s.nonfinite;
    switch (m.is) {
      case kind::mean:
        if (s.weight > 0 || s.nonfinite > 0) r.values.push_back({m.name, ratio(s.sum, s.weight)});
        break;
      case kind::accuracy:
        if (s.count == 0) break;
        r.values.push_back({m.top_k == 1 ? m.name : m.name + "1", ratio(number(s.correct_1), number(s.count)),
                            quantity_unit::share});
        if (m.top_k > 1)
          r.values.push_back({m.name + std::to_string(m.top_k), ratio(number(s.correct_k), number(s.count)),
                              quantity_unit::share});
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

  bool empty() const noexcept {
    for (const auto& m : metrics_)
      if (!m.totals.empty()) return false;
    return true;
  }

  metrics_options options_;
  instant since_;
  std::deque<detail::named_metric> metrics_;   // a deque: the handles point into it
  std::deque<row_under_way> under_way_;        // oldest first, as the device has them
  std::optional<data_error> bad_labels_;
  log_point last_{};
  std::uint64_t steps_since_ = 0, log_skipped_ = 0;
};

}}  // namespace millrace
