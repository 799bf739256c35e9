// Means, accuracies and counts, summed inside the step and handed to the log every so many steps, without waiting.
//
//   mr::metrics m({.every = 50});
//   auto loss = m.mean("loss");
//   auto top = m.accuracy("top", {.top_k = 5});            // the row holds "top1" and "top5"
//   for (auto& b : run) {
//     loss.add(step_loss, batch_size);  top.add(logits, labels);  m.count("samples", batch_size);
//     m.maybe_log(step, out);                               // a row at every 50th call; "samples_per_s" comes with it
//   }
//   m.finish(out);                                          // the rest
//
// Logits are [B, C] f32, labels [B] i32 or i64. Sums are f64, counts u64, so a row is exact for the steps since the row
// before it. Where the log's queue is full the hand-over is put off to the next interval, the sums go on, and nothing
// is lost: log_skipped() counts these. Values that are NaN or infinite are kept out of sums and counted; the row shows
// them as `nonfinite`. A row of logits with a NaN counts as wrong, and as nonfinite.
// Views of GPU memory are refused here by setup_error. `stream` orders a GPU's work; the host ignores it.
// Errors: setup_error for names and shapes, data_error for a label that is no class. Threads: the step's own; the
// handles point into the metrics, which outlive them.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/json_text.hpp>
#include <millrace/device/stream.hpp>
#include <millrace/item/tensor.hpp>
#include <millrace/train/log.hpp>
#include <millrace/train/target_rank.hpp>

#include <concepts>
#include <deque>
#include <limits>
#include <string>
#include <string_view>

namespace millrace::inline MILLRACE_ABI {

struct metrics_options {
  std::uint64_t every = 50;            ///< steps between rows
  time_source now = system_instant;
};

struct add_options {
  double weight = 1;                   ///< of each value
  stream_view stream{};                ///< the GPU stream that makes the values
};

struct accuracy_options {
  std::size_t top_k = 1;               ///< above 1: top-1 and top-k, both from one pass
};

/// Where in the training a row belongs.
struct log_point {
  std::uint64_t step = 0;
  std::optional<std::uint64_t> epoch{};
};

namespace detail {

/// What one name has summed up since the last row.
struct metric_sums {
  enum class kind : std::uint8_t { mean, accuracy, count, share };

  std::string name{};
  kind is = kind::mean;
  std::size_t top_k = 1;
  double sum = 0, weight = 0;
  std::uint64_t count = 0, correct_1 = 0, correct_k = 0, nonfinite = 0;

  void clear() noexcept {
    sum = weight = 0;
    count = correct_1 = correct_k = nonfinite = 0;
  }
  void add(double value, double value_weight) noexcept {
    const double product = value * value_weight;
    if (!is_finite(value) || !is_finite(value_weight) || !is_finite(product)) {
      ++nonfinite;
      return;
    }
    sum += product;
    weight += value_weight;
  }
};

}  // namespace detail

/// A weighted mean; made by metrics::mean.
class mean_metric {
 public:
  explicit mean_metric(detail::metric_sums& sums) noexcept : sums_(&sums) {}

  void add(double value, double weight = 1) noexcept { sums_->add(value, weight); }
  /// Every element of `values` with the same weight: per-sample losses, or the one mean loss of a step.
  void add(tensor_view<const float, 1> values, add_options how = {}) {
    for (const float v : values.host()) sums_->add(static_cast<double>(v), how.weight);
  }

 private:
  detail::metric_sums* sums_;
};

/// Share of samples whose class is right; made by metrics::accuracy.
class accuracy_metric {
 public:
  explicit accuracy_metric(detail::metric_sums& sums) noexcept : sums_(&sums) {}

  void add(tensor_view<const float, 2> logits, tensor_view<const std::int32_t, 1> labels, add_options how = {}) {
    add_rows(logits, labels, how);
  }
  void add(tensor_view<const float, 2> logits, tensor_view<const std::int64_t, 1> labels, add_options how = {}) {
    add_rows(logits, labels, how);
  }

 private:
  template <class Label>
  void add_rows(tensor_view<const float, 2> logits, tensor_view<const Label, 1> labels, const add_options&) {
    const std::size_t classes = logits.shape[1];
    if (labels.shape[0] != logits.shape[0])
      throw setup_error("accuracy '" + sums_->name + "' got logits " + to_string(logits.shape) + " and labels " +
                            to_string(labels.shape),
                        "Logits are [batch, classes] and labels [batch]; cut both to the batch's size()");
    const auto values = logits.host();
    const auto targets = labels.host();
    // All labels first: a batch counts as a whole or not at all.
    for (std::size_t b = 0; b < targets.size(); ++b)
      if (targets[b] < 0 || static_cast<std::uint64_t>(targets[b]) >= classes)
        throw data_error("label " + std::to_string(targets[b]) + " in row " + std::to_string(b) +
                             " of the batch, with " + std::to_string(classes) + " classes of logits",
                         "Labels are 0 .. classes - 1; check the data set and the size of the last layer");
    for (std::size_t b = 0; b < targets.size(); ++b) {
      const std::size_t rank = target_rank(values.subspan(b * classes, classes), static_cast<std::size_t>(targets[b]));
      sums_->correct_1 += rank == 0;
      sums_->correct_k += rank < sums_->top_k;
      sums_->nonfinite += rank == unranked;
    }
    sums_->count += targets.size();
  }

  detail::metric_sums* sums_;
};

class metrics {
 public:
  explicit metrics(metrics_options options = {}) : options_(std::move(options)), since_(options_.now()) {
    if (options_.every == 0)
      throw setup_error("metrics_options::every is 0", "Give the number of steps between two rows, at least 1");
  }

  mean_metric mean(std::string_view name) { return mean_metric(named(name, kind::mean)); }
  accuracy_metric accuracy(std::string_view name, accuracy_options options = {}) {
    if (options.top_k == 0) throw setup_error("accuracy_options::top_k is 0", "1 counts the most likely class only");
    auto& sums = named(name, kind::accuracy);
    sums.top_k = options.top_k;
    return accuracy_metric(sums);
  }
  /// Adds to a count; the row holds it and its rate, "<name>_per_s".
  void count(std::string_view name, std::uint64_t n) { named(name, kind::count).count += n; }
  /// Adds to a time; the row holds its share of the time since the row before.
  void spent_ns(std::string_view name, std::uint64_t ns) { named(name, kind::share).count += ns; }

  /// To be called once a step. True where a row was handed over.
  bool maybe_log(log_point at, log& out) {
    last_ = at;
    if (++steps_since_ % options_.every != 0) return false;
    if (hand_over(out)) return true;
    ++log_skipped_;
    return false;
  }
  bool maybe_log(std::uint64_t step, log& out) { return maybe_log(log_point{.step = step, .epoch = last_.epoch}, out); }

  /// Hands over what has been summed since the last row, if anything. Waits for room in the log, up to its drain_ns.
  void finish(log& out) {
    if (empty()) return;
    if (hand_over(out)) return;
    out.flush();
    if (hand_over(out)) return;
    if (out.push(read_now())) restart();
  }
  void finish(log& out, log_point at) {
    last_ = at;
    finish(out);
  }

  /// The row as it stands, changing nothing. On a GPU this waits for the step; on the host it costs what a row costs.
  row read_now() const { return row_at(options_.now()); }

  /// Starts all sums anew.
  void restart() { restart_at(options_.now()); }

  std::uint64_t log_skipped() const noexcept { return log_skipped_; }

 private:
  using kind = detail::metric_sums::kind;

  row row_at(instant now) const {
    const double seconds = to_seconds(now.steady_ns - since_.steady_ns);
    row r{.step = last_.step, .epoch = last_.epoch, .unix_ns = now.unix_ns};
    for (const auto& s : sums_) add_values(r, s, seconds);
    return r;
  }

  void restart_at(instant now) {
    for (auto& s : sums_) s.clear();
    steps_since_ = 0;
    since_ = now;
  }

  /// The one of that name, made on first use: after that no allocation.
  detail::metric_sums& named(std::string_view name, kind is) {
    for (auto& s : sums_)
      if (s.name == name) {
        if (s.is != is)
          throw setup_error("the metric '" + printable(name) + "' is already one of another kind",
                            "Choose another name");
        return s;
      }
    for (const std::string_view taken : {"", "step", "epoch", "time", "nonfinite", "message"})
      if (name == taken) throw setup_error("'" + std::string(name) + "' cannot name a metric", "Choose another name");
    sums_.push_back({.name = std::string(name), .is = is});
    return sums_.back();
  }

  static void add_values(row& r, const detail::metric_sums& s, double seconds) {
    const auto ratio = [](double part, double whole) {
      return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
    };
    const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
    r.nonfinite += s.nonfinite;
    switch (s.is) {
      case kind::mean:
        if (s.weight > 0 || s.nonfinite > 0) r.values.push_back({s.name, ratio(s.sum, s.weight)});
        break;
      case kind::accuracy:
        if (s.count == 0) break;
        r.values.push_back({s.top_k == 1 ? s.name : s.name + "1", ratio(number(s.correct_1), number(s.count)),
                            quantity_unit::share});
        if (s.top_k > 1)
          r.values.push_back({s.name + std::to_string(s.top_k), ratio(number(s.correct_k), number(s.count)),
                              quantity_unit::share});
        break;
      case kind::count:
        r.values.push_back({s.name, number(s.count), quantity_unit::count});
        if (seconds > 0) r.values.push_back({s.name + "_per_s", number(s.count) / seconds, quantity_unit::per_second});
        break;
      case kind::share:
        if (seconds > 0) r.values.push_back({s.name, number(s.count) * 1e-9 / seconds, quantity_unit::share});
        break;
    }
  }

  bool empty() const noexcept {
    for (const auto& s : sums_)
      if (s.weight > 0 || s.count > 0 || s.nonfinite > 0) return false;
    return true;
  }

  bool hand_over(log& out) {
    const instant now = options_.now();
    if (!out.offer(row_at(now))) return false;
    restart_at(now);
    return true;
  }

  metrics_options options_;
  instant since_;
  std::deque<detail::metric_sums> sums_;   // a deque: the handles point into it
  log_point last_{};
  std::uint64_t steps_since_ = 0, log_skipped_ = 0;
};

}  // namespace millrace::inline MILLRACE_ABI
