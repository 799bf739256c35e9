// Sums of metrics in device memory for mr::metrics; mr::cuda_metric_sums() creates them in a .cu file.
//
//   std::shared_ptr<mr::device_sums> make_sums();        // in a .cu: return mr::cuda_metric_sums();
//   mr::metrics m({.every = 50, .device = make_sums()}); // in a .cpp
//
// The current stream is the stream of the last add. A hand-over copies the sums of all metrics at one point of the
// current stream, and then resets the sums. The totals arrive on the host later, in the order of the hand-overs. The
// number of pending hand-overs is limited. Only functions whose names begin with wait_ or read_ block.
// Errors: io_error from the device, setup_error for a call that is not allowed. Threads: not synchronized.
// Lifetime: one object serves one mr::metrics. After an add, the stream of this add must live until finish() or
// read_now() returns, a later add uses another stream, or the sums are destroyed. If a graph captures the add, finish()
// and read_now() are not sufficient, because the graph may run again.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/device/stream.hpp>
#include <millrace/train/metric_totals.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

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
  /// Queues a kernel that adds the ranks of the targets in `rows` to a metric.
  virtual void add_rows(std::size_t metric, const device_rows& rows) = 0;

  /// Begins a group of adds, which may be queued together at the end of the group. The views of these adds must stay
  /// valid until the end of the group. Returns false if a group has already begun; that group continues.
  virtual bool begin_group() { return false; }
  /// Ends the group, and queues its adds.
  virtual void end_group() {}
  /// Ends the group, and discards its adds that have not been queued.
  virtual void discard_group() noexcept {}

  /// Returns whether add_values() or add_rows() was called. hand_over() needs the stream of such a call.
  virtual bool used() const noexcept = 0;
  /// Queues a hand-over. Returns false and does nothing if too many hand-overs are pending, or if the stream is being
  /// captured.
  virtual bool hand_over() = 0;
  /// Returns the totals of the oldest hand-over, one per metric. Returns null while the totals are pending, and while
  /// the stream is being captured.
  virtual const metric_totals* oldest() = 0;
  /// Blocks until the totals of the oldest hand-over have arrived, and returns the totals. Returns null if no hand-over
  /// is pending.
  virtual const metric_totals* wait_for_oldest() = 0;
  /// Releases the memory of the oldest hand-over for a new one.
  virtual void release_oldest() noexcept = 0;

  /// Blocks until the device has completed all adds, and returns the sums so far, one per metric. Changes nothing.
  virtual std::vector<metric_totals> read_now() = 0;
  /// Queues a reset of all sums in the current stream.
  virtual void restart() = 0;

 private:
  bool claimed_ = false;
};

}}   // namespace millrace
