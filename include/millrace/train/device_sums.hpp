// Sums of metrics in device memory, as mr::metrics sees them: made by mr::cuda_metric_sums() in a .cu file.
//
//   std::shared_ptr<mr::device_sums> make_sums();        // in a .cu: return mr::cuda_metric_sums({.device = 0});
//   mr::metrics m({.every = 50, .device = make_sums()}); // in a .cpp
//
// A hand-over takes the sums of all metrics at one place of the step's stream, that of the last add, and starts them
// anew there; its totals arrive on the host later. Hand-overs arrive in order; a fixed number may be under way. Only
// the functions named wait_ and read_ wait. Errors: io_error from the device, setup_error for a call that cannot be.
// Threads: the step's own. Lifetime: for one mr::metrics; streams live until the last add in another one, or the end.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/device/stream.hpp>
#include <millrace/train/metric_totals.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The element of values and logits.
enum class number_kind : std::uint8_t { f32, f16, bf16 };

/// Values in device memory, each of the same weight.
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
  bool wide_labels = false;   ///< i64
  std::size_t rows = 0, classes = 0;
  std::size_t top_k = 1;
  stream_view stream{};
};

class device_sums {
 public:
  virtual ~device_sums() = default;

  /// By the one mr::metrics that they are for: a second one would take the first one's sums with its own.
  void claim() {
    if (claimed_)
      throw setup_error("two mr::metrics were given the same device_sums", "Make one for each: training, validation");
    claimed_ = true;
  }

  /// Makes room for one more metric and returns its number.
  virtual std::size_t add_metric() = 0;
  virtual void add_values(std::size_t metric, const device_values& values) = 0;
  virtual void add_rows(std::size_t metric, const device_rows& rows) = 0;

  /// Whether anything was ever added: before that there is nothing to hand over and no stream to do it in.
  virtual bool used() const noexcept = 0;
  /// Queues a hand-over. False, and nothing is done, where too many are under way or the stream is being captured.
  virtual bool hand_over() = 0;
  /// The totals of the oldest hand-over, by metric; null while they are under way, or the stream is being captured.
  virtual const metric_totals* oldest() = 0;
  virtual const metric_totals* wait_for_oldest() = 0;
  virtual void release_oldest() noexcept = 0;

  /// The sums as they stand, by metric.
  virtual std::vector<metric_totals> read_now() = 0;
  /// Starts all sums anew, at this place of the stream.
  virtual void restart() = 0;

 private:
  bool claimed_ = false;
};

}}  // namespace millrace
