// Computes means, accuracies and counts of a training loop. Every few steps, passes these values to the log as one row
// (an entry of the log, not a row of a batch), without waiting.
//
//   mr::metrics m({.every = 50});
//   auto loss = m.mean("loss");
//   auto top = m.accuracy("top", {.top_k = 5});            // the row has "top1" and "top5"
//   for (auto& b : run) {
//     auto [step_loss, logits] = train_step(b);             // a number and a view [B, C]
//     loss.add(step_loss, b.size());  top.add(logits, b.get<&example::label>());  m.count("samples", b.size());
//     m.maybe_log(b.step(), out);                           // a row at each 50th call, also with "samples_per_s"
//   }
//   m.finish(out);                                          // the remaining sums
//
// Shapes: values [B] and logits [B, C] are f32, f16 or bf16; labels [B] are i32 or i64. Sums are f64 and counts u64.
// Each row covers exactly the steps since the previous row.
// If the log's queue is full, no row is written: the sums of the interval become part of the next row. log_skipped()
// counts these intervals.
// NaN and infinite values are excluded from the sums; the row contains their number as `nonfinite`. A row of logits
// with a NaN counts as incorrect and as nonfinite.
// On a GPU: set `.device = mr::cuda_metric_sums()` (metrics.cuh) and add views of GPU memory with `.stream`. Values on
// the host may be added to the same metric. maybe_log() does not wait for the GPU; a later call writes the row, with
// its original step. If too many rows are pending, the sums of the interval become part of the next row. Only finish(),
// read_now() and the destructor wait. Without `.device`, add() throws setup_error for views of GPU memory.
// Each add on a GPU launches one or two kernels. A group of up to 8 adds launches only one or two kernels in total, and
// has the same results as separate adds:
//
//   m.add_together([&] { loss.add(losses, {.stream = s});  top.add(logits, labels, {.stream = s}); });
//
// Errors: setup_error for wrong names and shapes; data_error for a label that is not a class. For labels on the host,
// add() throws the data_error. For labels on a GPU, maybe_log() or finish() throws the data_error when it writes the
// row. The sums in this row count only the valid labels.
// Threads: not synchronized. Lifetime: the metrics must outlive their handles.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/half.hpp>
#include <millrace/device/stream.hpp>
#include <millrace/item/tensor/tensor.hpp>
#include <millrace/train/device_sums.hpp>
#include <millrace/train/log.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// The handles to which a training step adds values: a mean, and a share of correct classes. mr::metrics creates them.
// Errors: setup_error for wrong shapes. setup_error for a view of GPU memory if the mr::metrics object has no
// `.device`. data_error for a label on the host that is not a class. Lifetime: the mr::metrics object must outlive its
// handles. Threads: not synchronized.

/// The weight of added values and the stream that computes them.
struct add_options {
  double weight = 1;      ///< weight of each value
  stream_view stream{};   ///< the GPU stream that computes the values
};

namespace detail {

/// One metric: its name, and its sums on the host since the last row of the log.
struct named_metric {
  enum class kind : std::uint8_t { mean, accuracy, count, share };

  std::string name{};
  kind is = kind::mean;
  std::size_t top_k = 1;
  device_sums* device = nullptr;   // receives the added views of GPU memory
  std::size_t on_device = 0;       // index of this metric in `device`
  metric_totals totals{};

  template <class T, std::size_t N>
  device_sums& on(const tensor_view<T, N>& view) const {
    if (device) return *device;
    throw setup_error("the metric '" + name + "' cannot read the column " + std::string(view.name) + " in GPU memory",
                      "Set metrics_options::device to mr::cuda_metric_sums() of train/metrics.cuh, which needs nvcc");
  }
};

template <training_element T>
constexpr number_kind kind_of = std::is_same_v<T, float> ? number_kind::f32
                                : std::is_same_v<T, f16> ? number_kind::f16
                                                         : number_kind::bf16;

}   // namespace detail

/// A weighted mean; created by metrics::mean.
class mean_metric {
 public:
  /// Adds one value on the host.
  void add(double value, double weight = 1) noexcept { metric_->totals.add(value, weight); }
  /// Adds each element of `values` [B] with the weight `how.weight`. The view contains one loss per sample, or a single
  /// mean loss. Throws setup_error for GPU memory if the mr::metrics object has no `.device`.
  void add(tensor_view<const float, 1> values, add_options how = {}) { add_values(values, how); }
  void add(tensor_view<const f16, 1> values, add_options how = {}) { add_values(values, how); }
  void add(tensor_view<const bf16, 1> values, add_options how = {}) { add_values(values, how); }

 private:
  template <class T>
  void add_values(const tensor_view<const T, 1>& values, const add_options& how) {
    if (values.memory == memory_kind::device)
      return metric_->on(values).add_values(metric_->on_device, {.data = values.data,
                                                                 .kind = detail::kind_of<T>,
                                                                 .count = values.size(),
                                                                 .weight = how.weight,
                                                                 .stream = how.stream});
    for (const T v : values.host()) metric_->totals.add(static_cast<double>(detail::to_float(v)), how.weight);
  }

  friend class metrics;
  explicit mean_metric(detail::named_metric& metric) noexcept : metric_(&metric) {}

  detail::named_metric* metric_;
};

/// The share of samples whose class is correct; created by metrics::accuracy.
class accuracy_metric {
 public:
  /// Adds the rows of one batch: logits [B, C] and labels [B], both in the same memory. Throws setup_error if shapes or
  /// memory kinds do not match. Throws data_error if a label on the host is not a class.
  template <class T, class Label>
    requires detail::training_element<std::remove_const_t<T>> &&
             (std::is_same_v<std::remove_const_t<Label>, std::int32_t> ||
              std::is_same_v<std::remove_const_t<Label>, std::int64_t>)
  void add(tensor_view<T, 2> logits, tensor_view<Label, 1> labels, add_options how = {}) {
    if (labels.shape[0] != logits.shape[0])
      throw setup_error("accuracy '" + metric_->name + "' got logits " + to_string(logits.shape) + " and labels " +
                            to_string(labels.shape),
                        "Pass logits [n, classes] and labels [n], where n is size() of the batch");
    if (labels.memory != logits.memory)
      throw setup_error(
          "accuracy '" + metric_->name + "' got logits and labels in different memory: one is in GPU memory",
          "Pass both in host memory, or both in GPU memory");
    if (logits.memory == memory_kind::device)
      return metric_->on(logits).add_rows(metric_->on_device, {.logits = logits.data,
                                                               .kind = detail::kind_of<std::remove_const_t<T>>,
                                                               .labels = labels.data,
                                                               .wide_labels = sizeof(Label) == sizeof(std::int64_t),
                                                               .rows = logits.shape[0],
                                                               .classes = logits.shape[1],
                                                               .top_k = metric_->top_k,
                                                               .stream = how.stream});
    add_on_host<std::remove_const_t<T>>(logits.host(), labels.host(), logits.shape[1]);
  }

 private:
  template <class T, class Label>
  void add_on_host(std::span<const T> logits, std::span<Label> labels, std::size_t classes) {
    // Checks all labels first, so that a batch is counted either completely or not at all.
    for (std::size_t b = 0; b < labels.size(); ++b)
      if (labels[b] < 0 || static_cast<std::uint64_t>(labels[b]) >= classes)
        throw data_error("label " + std::to_string(labels[b]) + " in row " + std::to_string(b) +
                             " of the batch is out of range: the logits have " + std::to_string(classes) + " classes",
                         "Use labels from 0 to classes - 1: check the data set and the size of the last layer");
    auto& totals = metric_->totals;
    for (std::size_t b = 0; b < labels.size(); ++b) {
      const std::size_t rank = detail::target_rank(logits.subspan(b * classes, classes),
                                                   static_cast<std::size_t>(labels[b]));
      totals.correct_1 += rank == 0;
      totals.correct_k += rank < metric_->top_k;
      totals.nonfinite += rank == detail::unranked;
    }
    totals.count += labels.size();
  }

  friend class metrics;
  explicit accuracy_metric(detail::named_metric& metric) noexcept : metric_(&metric) {}

  detail::named_metric* metric_;
};

/// The interval, the clock and the device of metrics.
struct metrics_options {
  std::uint64_t every = 50;   ///< steps between rows
  time_source now = detail::system_instant;
  std::shared_ptr<device_sums> device{};   ///< for views of GPU memory
};

/// Selects the accuracies of a metric.
struct accuracy_options {
  std::size_t top_k = 1;   ///< if greater than 1, top-1 and top-k are counted in one pass
};

/// The step and epoch that a row belongs to.
struct log_point {
  std::uint64_t step = 0;
  std::optional<std::uint64_t> epoch{};
};

/// mr::metrics: the sums of all metrics of one training loop.
class metrics {
 public:
  /// Creates an object without metrics. Throws setup_error if `every` is 0, or if another mr::metrics uses `device`.
  explicit metrics(metrics_options options = {});
  metrics(metrics&&) = default;

  /// Returns the handle of a weighted mean. Throws setup_error for a name that each row already contains, such as
  /// "step" or "time", and for the name of a metric of another kind.
  mean_metric mean(std::string_view name) { return mean_metric(named(name, kind::mean)); }
  /// Returns the handle of an accuracy. Throws setup_error for the same names as mean() does, and for a top_k of 0.
  accuracy_metric accuracy(std::string_view name, accuracy_options options = {});
  /// Adds `n` to a count. The row has the count and its rate, "<name>_per_s".
  void count(std::string_view name, std::uint64_t n) { named(name, kind::count).totals.count += n; }
  /// Adds `ns` to a duration. The row contains this duration as a share (0..1) of the time since the previous row.
  void spent_ns(std::string_view name, std::uint64_t ns) { named(name, kind::share).totals.count += ns; }

  /// Calls `adds`. Its add() calls for views of GPU memory are executed together, with as few kernels as possible. The
  /// views must stay valid until add_together() returns. If `adds` throws an exception, some of its views may be
  /// missing in the sums.
  template <std::invocable Adds>
  void add_together(Adds&& adds) {
    device_sums* const sums = options_.device && options_.device->begin_group() ? options_.device.get() : nullptr;
    try {
      std::forward<Adds>(adds)();
    } catch (...) {
      if (sums) sums->discard_group();
      throw;
    }
    if (sums) sums->end_group();
  }

  /// Writes a row to the log when a row is due; call it once per step. Returns true if the log accepted a row.
  bool maybe_log(log_point at, log& out);
  /// Calls maybe_log() with this step and with the epoch of the previous call.
  bool maybe_log(std::uint64_t step, log& out) { return maybe_log(log_point{.step = step, .epoch = last_.epoch}, out); }

  /// Writes the sums since the last row, if any. Waits for the GPU.
  /// If the log's queue is full, also waits until the sinks have received the queued rows. This wait lasts at most
  /// log_options::drain.
  void finish(log& out);
  /// Calls finish(out), but the row has the step and the epoch of `at`.
  void finish(log& out, log_point at);

  /// Returns the row of the sums so far and changes nothing. With sums on a GPU, the call waits until the GPU has
  /// completed all adds.
  row read_now() const;

  /// Resets all sums. Rows that are pending on a GPU are still written.
  void restart();

  /// Returns the number of due rows that were not written. Their sums became part of the next row.
  std::uint64_t log_skipped() const noexcept { return log_skipped_; }

 private:
  using kind = detail::named_metric::kind;

  /// The steps that a row covers.
  struct window {
    log_point at{};
    instant since{}, until{};
  };
  /// A row whose sums on the device are pending.
  struct pending_row {
    std::vector<metric_totals> host;
    window of;
    bool unless_empty = false;
    std::optional<row> finished{};   // the complete row, which waits for space in the log
  };

  bool on_device() const noexcept { return options_.device && options_.device->used(); }

  std::vector<metric_totals> host_totals() const;
  void merge_device(std::vector<metric_totals>& all, const metric_totals* device) const;
  row row_of(const std::vector<metric_totals>& all, const window& w) const;
  void restart_host(instant now);

  /// Writes a row with only the host's sums. Returns false if the log's queue is full.
  bool write_at_once(log& out);

  /// Requests the device's sums, and stores the host's sums until the device's sums arrive. Returns false if too many
  /// rows are pending.
  bool start_hand_over();
  bool write_arrived(log& out);
  void write_all(log& out);

  /// Builds the row. Returns whether the row has any values.
  bool make_row(pending_row& r, const metric_totals* arrived);
  void release_first() noexcept;
  void throw_bad_labels();

  /// Returns the metric of that name. Allocates the metric on first use only.
  detail::named_metric& named(std::string_view name, kind is);
  static void add_values(row& r, const detail::named_metric& m, const metric_totals& s, double seconds);
  bool empty() const noexcept;

  metrics_options options_;
  instant since_;
  std::deque<detail::named_metric> metrics_;   // a deque, because the handles point to its elements
  std::deque<pending_row> pending_;            // oldest first, the order in which the device delivers sums
  std::optional<data_error> bad_labels_;
  log_point last_{};
  std::uint64_t steps_since_ = 0, log_skipped_ = 0;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/metrics.inl>
#endif
