// The handles to which a training step adds values: a mean, and a share of correct classes. mr::metrics creates the
// handles (train/metrics.hpp).
//
//   auto loss = m.mean("loss");
//   auto top = m.accuracy("top");
//   loss.add(0.7, b.size());                                        // a value on the host
//   loss.add(losses, {.weight = 1, .stream = b.stream()});          // a view of host or GPU memory
//   top.add(logits, labels, {.stream = b.stream()});                // [B, C] f32, f16 or bf16; [B] i32 or i64
//
// Errors: setup_error for wrong shapes, and for GPU memory if the metrics have no `.device`; data_error for a label on
// the host that is not a class. Lifetime: the metrics must outlive their handles. Threads: not synchronized.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/device/stream.hpp>
#include <millrace/item/tensor/tensor.hpp>
#include <millrace/train/device_sums.hpp>
#include <millrace/train/target_rank.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI {

/// The weight of added values and the stream that computes them.
struct add_options {
  double weight = 1;      ///< weight of each value
  stream_view stream{};   ///< the GPU stream that computes the values
};

namespace detail {

/// One metric: its name and its sums on the host since the last row.
struct named_metric {
  enum class kind : std::uint8_t { mean, accuracy, count, share };

  std::string name{};
  kind is = kind::mean;
  std::size_t top_k = 1;
  device_sums* device = nullptr;   // receives the added views of GPU memory
  std::size_t on_device = 0;       // number of this metric in `device`
  metric_totals totals{};

  template <class T, std::size_t N>
  device_sums& on(const tensor_view<T, N>& view) const {
    if (device) return *device;
    throw setup_error("the metric '" + name + "' cannot read the column " + std::string(view.name) + " in GPU memory",
                      "Use metrics({.device = mr::cuda_metric_sums()}), created in a .cu file with train/metrics.cuh");
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
  /// Adds each element of `values` [B] with the same weight: per-sample losses, or a single mean loss.
  /// Throws setup_error for GPU memory if the metrics have no `.device`.
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
  /// Adds the rows of one batch: logits [B, C] f32, f16 or bf16 and labels [B] i32 or i64, both in the same memory.
  /// Throws setup_error if shapes or memory kinds do not match. Throws data_error if a label on the host is not a
  /// class.
  template <class T, class Label>
    requires detail::training_element<std::remove_const_t<T>> &&
             (std::is_same_v<std::remove_const_t<Label>, std::int32_t> ||
              std::is_same_v<std::remove_const_t<Label>, std::int64_t>)
  void add(tensor_view<T, 2> logits, tensor_view<Label, 1> labels, add_options how = {}) {
    if (labels.shape[0] != logits.shape[0])
      throw setup_error("accuracy '" + metric_->name + "' got logits " + to_string(logits.shape) + " and labels " +
                            to_string(labels.shape),
                        "Pass logits [batch, classes] and labels [batch], both with the batch's size() rows");
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

}}   // namespace millrace
