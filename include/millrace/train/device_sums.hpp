// Sums of metrics in device memory for mr::metrics; mr::cuda_metric_sums() creates them in a .cu file.
//
//   std::shared_ptr<mr::device_sums> make_sums();        // in a .cu: return mr::cuda_metric_sums();
//   mr::metrics m({.every = 50, .device = make_sums()}); // in a .cpp
//
// An add is a call of add_values() or add_rows(). The current stream is the stream of the latest add. A hand-over is
// work in the current stream: it copies the sums of all metrics, and then resets them. The totals arrive on the host
// later, in the order of the hand-overs. The number of pending hand-overs is limited. Only wait_for_oldest(),
// read_now() and the destructor wait for the device.
// Errors: io_error from the device, setup_error for a call that is not allowed. Threads: not synchronized.
// Lifetime: one object serves one mr::metrics. The stream of an add must exist until one of these events:
// metrics::finish() or read_now() returns, a later add uses another stream, or the sums are destroyed. If a CUDA graph
// captured the add, the stream must exist even after finish() and read_now(), because the graph may run again.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/half.hpp>
#include <millrace/base/version.hpp>
#include <millrace/device/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// The sums of one metric since the last row of the log, on the host or in device memory. A row of the log is one entry
// of the log, not a row of a batch.
//
//   mr::metric_totals t;
//   t.add(loss, batch_size);            // NaN and infinite values are counted and excluded from the sum
//   t.merge(others);
//   double mean = t.sum / t.weight;
//
// Sums are f64, counts are u64. Threads: not synchronized. Both host code and CUDA kernels call these functions.

/// Weighted sum, counts and errors of one metric.
struct metric_totals {
  double sum = 0, weight = 0;   ///< sum of value x weight; sum of weights
  std::uint64_t count = 0;      ///< for an accuracy: samples; for a count: units; for a share: nanoseconds
  std::uint64_t correct_1 = 0, correct_k = 0;
  std::uint64_t nonfinite = 0;    ///< for a mean: values excluded from `sum`; for an accuracy: rows with a NaN
  std::uint64_t bad_labels = 0;   ///< rows that a device omitted because their label is not a class

  /// Adds value * weight to `sum`, and the weight to `weight`. If the product or the weight is not finite, only
  /// increments `nonfinite`.
  MILLRACE_BOTH_SIDES void add(double value, double value_weight) noexcept {
    const double product = value * value_weight;
    if (!detail::is_finite(value) || !detail::is_finite(value_weight) || !detail::is_finite(product)) {
      ++nonfinite;
      return;
    }
    sum += product;
    weight += value_weight;
  }

  /// Adds all members of `other`.
  MILLRACE_BOTH_SIDES void merge(const metric_totals& other) noexcept {
    sum += other.sum;
    weight += other.weight;
    count += other.count;
    correct_1 += other.correct_1;
    correct_k += other.correct_k;
    nonfinite += other.nonfinite;
    bad_labels += other.bad_labels;
  }

  /// Returns true if nothing was added.
  bool empty() const noexcept { return !(weight > 0) && count == 0 && nonfinite == 0 && bad_labels == 0; }
};

/// The element type of values and logits.
enum class number_kind : std::uint8_t { f32, f16, bf16 };

/// Values in device memory, all with the same weight.
struct device_values {
  const void* data = nullptr;
  number_kind kind = number_kind::f32;
  std::size_t count = 0;
  double weight = 1;
  stream_view stream{};
};

/// Rows of logits [rows, classes] and their labels [rows], i32 or i64, in device memory.
struct device_rows {
  const void* logits = nullptr;
  number_kind kind = number_kind::f32;
  const void* labels = nullptr;
  bool wide_labels = false;   ///< whether labels are i64; otherwise i32
  std::size_t rows = 0, classes = 0;
  std::size_t top_k = 1;
  stream_view stream{};
};

/// The interface between mr::metrics and the sums on a device.
class device_sums {
 public:
  virtual ~device_sums() = default;

  /// Reserves these sums for one mr::metrics. Throws setup_error on the second call, because the sums of two objects
  /// would be mixed.
  void claim() {
    if (claimed_)
      throw setup_error("two mr::metrics use the same device_sums",
                        "Create a separate device_sums for each mr::metrics, for example one for training and "
                        "one for validation");
    claimed_ = true;
  }

  /// Adds a metric and returns its number. Throws setup_error if the maximum number of metrics is reached.
  virtual std::size_t add_metric() = 0;
  /// Queues a kernel that adds `values` to a metric.
  virtual void add_values(std::size_t metric, const device_values& values) = 0;
  /// Queues a kernel that adds two counts to a metric: rows whose correct class has the highest logit, and rows whose
  /// correct class has one of the `top_k` highest logits.
  virtual void add_rows(std::size_t metric, const device_rows& rows) = 0;

  /// Begins a group of adds, which may be queued together at the end of the group. The views of these adds must stay
  /// valid until the end of the group. Returns false if a group has already begun; that group continues.
  virtual bool begin_group() { return false; }
  /// Ends the group, and queues its adds.
  virtual void end_group() {}
  /// Ends the group, and discards its adds that have not been queued.
  virtual void discard_group() noexcept {}

  /// Returns whether there was an add. Before the first add, hand_over() returns false and does nothing.
  virtual bool used() const noexcept = 0;
  /// Queues a hand-over. Returns false and does nothing if too many hand-overs are pending, or if the stream is being
  /// captured.
  virtual bool hand_over() = 0;
  /// Returns the totals of the oldest hand-over, one element per metric. Returns null if no hand-over is pending, if
  /// the totals have not arrived yet, or if the stream is being captured.
  virtual const metric_totals* oldest() = 0;
  /// Blocks until the totals of the oldest hand-over have arrived, and returns the totals. Returns null if no hand-over
  /// is pending.
  virtual const metric_totals* wait_for_oldest() = 0;
  /// Releases the memory of the oldest hand-over for a new one.
  virtual void release_oldest() noexcept = 0;

  /// Blocks until the device has completed all adds, and returns the sums so far, one per metric. Does not reset the
  /// sums.
  virtual std::vector<metric_totals> read_now() = 0;
  /// Queues a reset of all sums in the current stream.
  virtual void restart() = 0;

 private:
  bool claimed_ = false;
};

}}   // namespace millrace

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Returns the rank of the correct class in a row of logits: the number of classes with a higher logit. Top-1 and top-k
// accuracy are computed from this rank.
//
//   auto rank = mr::detail::target_rank(logits_of_one_sample, label);
//   bool top_1_is_right = rank == 0, top_5_is_right = rank < 5;
//
// Ties: among equal logits, the class with the lower number ranks first, as in argmax. The rank in a row with a NaN is
// `unranked`.
// Cost: one pass, without sorting. Errors: none. Threads: the functions are pure; any thread may call them.

/// The rank of the target in a row with a NaN.
inline constexpr std::size_t unranked = ~std::size_t{0};

/// Counts the classes that rank before the target, in a part of a row. merge() combines the parts of a row.
struct metric_rank_part {
  std::uint32_t ahead = 0, nans = 0;

  MILLRACE_BOTH_SIDES constexpr void take(float logit, float target, bool before_label) noexcept {
    ahead += before_label ? logit >= target : logit > target;
    nans += is_nan(logit);
  }
  MILLRACE_BOTH_SIDES constexpr void merge(const metric_rank_part& other) noexcept {
    ahead += other.ahead;
    nans += other.nans;
  }
  MILLRACE_BOTH_SIDES constexpr std::size_t rank() const noexcept { return nans > 0 ? ~std::size_t{0} : ahead; }
};

template <class T>
constexpr std::size_t metric_rank_among(std::span<const T> logits, std::size_t label) noexcept {
  const float target = to_float(logits[label]);
  metric_rank_part all;
  for (std::size_t c = 0; c < label; ++c) all.take(to_float(logits[c]), target, true);
  for (std::size_t c = label; c < logits.size(); ++c) all.take(to_float(logits[c]), target, false);
  return all.rank();
}

/// Returns the number of classes that rank before `label`, or `unranked`. `label` must be less than logits.size().
constexpr std::size_t target_rank(std::span<const float> logits, std::size_t label) noexcept {
  return metric_rank_among(logits, label);
}
/// Returns the rank for f16 logits.
constexpr std::size_t target_rank(std::span<const f16> logits, std::size_t label) noexcept {
  return metric_rank_among(logits, label);
}
/// Returns the rank for bf16 logits.
constexpr std::size_t target_rank(std::span<const bf16> logits, std::size_t label) noexcept {
  return metric_rank_among(logits, label);
}

}}}   // namespace millrace::detail
