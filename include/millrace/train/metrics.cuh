// The CUDA part of metrics.hpp: sums in GPU memory, updated inside the step's stream and read without waiting.
//
//   std::shared_ptr<mr::device_sums> make_sums() { return mr::cuda_metric_sums(); }   // in a .cu, on the current GPU
//   mr::metrics m({.every = 50, .device = make_sums()});                                              // in a .cpp
//   loss.add(losses_on_gpu, {.weight = 1, .stream = b.stream()});
//   m.maybe_log(step, out);                        // queues a hand-over, and writes the rows that have arrived since
//
// Transfer of a row to the host: at the end of each interval, a kernel in the step's stream moves the sums into a slot.
// A side stream waits for that kernel and copies the slot into pinned memory. A later maybe_log() detects that the copy
// is complete.
// The constructor allocates all memory, creates streams and events, and loads all kernels. An add is one kernel launch,
// or two launches for more than 4096 values. A group of up to 8 adds (metrics::add_together()) has the same number of
// launches as one add. Each launch costs 2 to 3 us of the CPU.
// An add in a new stream waits on the GPU for the adds in the previous stream. While the step's stream is being
// captured, maybe_log() does not move the sums. A captured add runs at each replay of its graph. Replay the graph in
// the stream of the adds before and after it.
// Memory: about 0.13 MB on the GPU with the default options.
// Known limitation: in confidential computing, each copy blocks.
// Errors: setup_error, io_error. Threads: not synchronized. Lifetime: the destructor waits for the stream of the last
// add and never throws.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/train/device_sums.hpp>
#include <millrace/train/metric_kernels.cuh>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The GPU and the capacity of its sums.
struct cuda_metric_sums_options {
  int device = -1;                ///< number of the GPU; -1 for the current GPU
  std::size_t max_metrics = 32;   ///< maximum number of means and accuracies together
  std::size_t slots = 4;          ///< maximum number of pending hand-overs
};

namespace detail {

class cuda_device_sums final : public device_sums {
 public:
  explicit cuda_device_sums(const cuda_metric_sums_options& o) : cuda_device_sums(o, std::vector<slot>(o.slots + 1)) {
    if (o.max_metrics == 0 || o.slots == 0)
      throw setup_error("cuda_metric_sums options are out of range: got max_metrics " + std::to_string(o.max_metrics) +
                            " and slots " + std::to_string(o.slots),
                        "Set both to at least 1; the defaults are 32 and 4");
    const current_context here(gpu_);
    const capture_tolerant now;
    const std::size_t bytes = o_.max_metrics * sizeof(metric_totals);
    constexpr std::size_t bytes_of_parts = add_group::max_adds * merge_metric_parts::threads * sizeof(metric_totals);
    check_cuda(cudaMalloc(&device_memory_, bytes * (ring_.size() + 1) + bytes_of_parts), "cudaMalloc");
    check_cuda(cudaHostAlloc(&pinned_memory_, bytes * ring_.size(), cudaHostAllocDefault), "cudaHostAlloc");
    check_cuda(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    make_event(order_);
    totals_ = static_cast<metric_totals*>(device_memory_);
    for (std::size_t i = 0; i < ring_.size(); ++i) {
      ring_[i].on_device = totals_ + (i + 1) * o_.max_metrics;
      ring_[i].on_host = static_cast<metric_totals*>(pinned_memory_) + i * o_.max_metrics;
      make_event(ring_[i].moved);
      make_event(ring_[i].landed);
    }
    parts_ = totals_ + (ring_.size() + 1) * o_.max_metrics;
    step_ = side_;   // used until the first add
    clear_totals();
    load_kernels();
    check_cuda(cudaStreamSynchronize(side_), "cudaStreamSynchronize");
  }
  cuda_device_sums(const cuda_device_sums&) = delete;
  cuda_device_sums& operator=(const cuda_device_sums&) = delete;
  ~cuda_device_sums() override {
    std::optional<current_context> here;
    std::optional<capture_tolerant> now;
    try {
      here.emplace(gpu_);
      now.emplace();
      // Kernels may still use the sums, and cudaFree need not wait for them. Synchronizing the entire device would end
      // captures of other threads.
      if (used_ && !is_capturing(step_)) {
        check_cuda(cudaEventRecord(order_, step_), "cudaEventRecord");
        check_cuda(cudaEventSynchronize(order_), "cudaEventSynchronize");
      }
    } catch (...) {
      // The device is lost or the runtime has ended. The rest is still released.
    }
    if (side_) ignore_cuda(cudaStreamSynchronize(side_));
    for (const slot& s : ring_)
      for (const cudaEvent_t event : {s.moved, s.landed})
        if (event) ignore_cuda(cudaEventDestroy(event));
    if (order_) ignore_cuda(cudaEventDestroy(order_));
    if (side_) ignore_cuda(cudaStreamDestroy(side_));
    if (pinned_memory_) ignore_cuda(cudaFreeHost(pinned_memory_));
    if (device_memory_) ignore_cuda(cudaFree(device_memory_));
  }

  std::size_t add_metric() override {
    if (metrics_ == o_.max_metrics)
      throw setup_error("more than " + std::to_string(o_.max_metrics) + " means and accuracies use sums on a GPU",
                        "Raise cuda_metric_sums({.max_metrics})");
    return metrics_++;
  }

  void add_values(std::size_t metric, const device_values& v) override {
    if (v.count == 0) return;
    check_default_stream(v.stream, gpu_);
    const current_context here(gpu_);
    check_gpu(v.data, "a view of values", gpu_.ordinal);
    enter(v.stream);
    if (is_group_open_) {
      const unsigned blocks = sum_values_blocks(v.count);
      metric_totals* const parts = blocks > 1 ? parts_ : nullptr;   // add_to_group() adds an offset
      return add_to_group({.data = v.data,
                           .count = v.count,
                           .weight = v.weight,
                           .to = totals_ + metric,
                           .parts = parts,
                           .limit = largest_metric_addend(v.weight),
                           .blocks = blocks,
                           .kind = v.kind});
    }
    switch (v.kind) {
      case number_kind::f32: return add_values_as<float>(metric, v);
      case number_kind::f16: return add_values_as<f16>(metric, v);
      case number_kind::bf16: return add_values_as<bf16>(metric, v);
    }
  }

  void add_rows(std::size_t metric, const device_rows& r) override {
    if (r.rows == 0) return;
    check_default_stream(r.stream, gpu_);
    const current_context here(gpu_);
    check_gpu(r.logits, "a view of logits", gpu_.ordinal);
    check_gpu(r.labels, "a view of labels", gpu_.ordinal);
    enter(r.stream);
    if (is_group_open_)
      return add_to_group({.data = r.logits,
                           .labels = r.labels,
                           .count = r.rows,
                           .classes = r.classes,
                           .top_k = r.top_k,
                           .to = totals_ + metric,
                           .blocks = rank_rows_blocks(r.rows),
                           .kind = r.kind,
                           .what = r.wide_labels ? grouped_add::work::wide_ranks : grouped_add::work::ranks});
    switch (r.kind) {
      case number_kind::f32: return add_rows_as<float>(metric, r);
      case number_kind::f16: return add_rows_as<f16>(metric, r);
      case number_kind::bf16: return add_rows_as<bf16>(metric, r);
    }
  }

  bool begin_group() override { return !std::exchange(is_group_open_, true); }
  void end_group() override {
    is_group_open_ = false;
    const current_context here(gpu_);
    queue_group();
  }
  void discard_group() noexcept override {
    is_group_open_ = false;
    group_.count = 0;
  }

  bool used() const noexcept override { return used_; }

  bool hand_over() override {
    if (!used_ || pending_ == o_.slots) return false;
    const current_context here(gpu_);
    if (is_capturing(step_)) return false;
    move_out(ring_[(first_ + pending_) % o_.slots], true);
    ++pending_;
    return true;
  }

  const metric_totals* oldest() override {
    if (pending_ == 0) return nullptr;
    const current_context here(gpu_);
    if (is_capturing(step_)) return nullptr;
    // A "not ready" from the query would replace an error that the training code has not checked yet. The next call
    // can query.
    const cudaError_t theirs = cudaPeekAtLastError();
    put_off_ = theirs != cudaSuccess && theirs != cudaErrorNotReady && !put_off_;
    if (put_off_) return nullptr;
    const capture_tolerant now;   // another thread may be capturing
    const cudaError_t reached = cudaEventQuery(ring_[first_].landed);
    if (reached == cudaErrorNotReady) {
      ignore_cuda(reached);
      return nullptr;
    }
    check_cuda(reached, "cudaEventQuery");
    return ring_[first_].on_host;
  }

  const metric_totals* wait_for_oldest() override {
    if (pending_ == 0) return nullptr;
    wait_for(ring_[first_]);
    return ring_[first_].on_host;
  }

  void release_oldest() noexcept override {
    first_ = (first_ + 1) % o_.slots;
    --pending_;
  }

  std::vector<metric_totals> read_now() override {
    std::vector<metric_totals> read(metrics_);
    if (!used_) return read;
    const current_context here(gpu_);
    refuse_capture("read_now()");
    slot& spare = ring_.back();
    move_out(spare, false);
    wait_for(spare);
    std::copy_n(spare.on_host, metrics_, read.begin());
    return read;
  }

  void restart() override {
    if (!used_) return;
    const current_context here(gpu_);
    refuse_capture("restart()");
    clear_totals();
  }

 private:
  struct slot {
    metric_totals* on_device = nullptr;
    metric_totals* on_host = nullptr;
    cudaEvent_t moved = nullptr, landed = nullptr;
  };

  /// The public constructor delegates to this constructor, so that the destructor runs if the public constructor fails.
  cuda_device_sums(const cuda_metric_sums_options& o, std::vector<slot> ring)
      : gpu_(context_of(o.device < 0 ? current_gpu() : o.device)), o_(o), ring_(std::move(ring)) {}

  static void make_event(cudaEvent_t& event) {
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }

  void clear_totals() {
    queue_group();
    work_follows();
    launch(store_metric_totals{totals_, nullptr, o_.max_metrics, true}, {.stream = step_});
  }

  /// Launches each kernel once with no work, so that no step waits for its code to be loaded.
  void load_kernels() {
    const std::size_t none = 0;
    launch(merge_metric_parts{parts_, 0, totals_}, {.stream = step_});
    launch(add_group{.adds = {{.to = totals_}}, .count = 1}, {.stream = step_});
    for (const number_kind kind : {number_kind::f32, number_kind::f16, number_kind::bf16}) {
      const device_values values{.kind = kind};
      const device_rows rows{.kind = kind};
      switch (kind) {
        case number_kind::f32: add_values_as<float>(none, values), load_ranks<float>(rows); break;
        case number_kind::f16: add_values_as<f16>(none, values), load_ranks<f16>(rows); break;
        case number_kind::bf16: add_values_as<bf16>(none, values), load_ranks<bf16>(rows); break;
      }
    }
  }
  template <class T>
  void load_ranks(device_rows rows) {
    add_rows_as<T>(0, rows);
    rows.wide_labels = true;
    add_rows_as<T>(0, rows);
  }

  template <class T>
  void add_values_as(std::size_t metric, const device_values& v) {
    const unsigned blocks = sum_values_blocks(v.count);
    launch(sum_values<T>{static_cast<const T*>(v.data), v.count, v.weight, largest_metric_addend(v.weight),
                         blocks == 1 ? totals_ + metric : parts_},
           {.blocks = blocks, .stream = step_});
    if (blocks > 1) launch(merge_metric_parts{parts_, blocks, totals_ + metric}, {.stream = step_});
  }
  template <class T>
  void add_rows_as(std::size_t metric, const device_rows& r) {
    r.wide_labels ? add_labelled<T, std::int64_t>(metric, r) : add_labelled<T, std::int32_t>(metric, r);
  }
  template <class T, class Label>
  void add_labelled(std::size_t metric, const device_rows& r) {
    launch(metric_rank_rows<T, Label>{static_cast<const T*>(r.logits), static_cast<const Label*>(r.labels), r.rows,
                                      r.classes, r.top_k, totals_ + metric},
           {.blocks = std::max(1U, rank_rows_blocks(r.rows)), .stream = step_});
  }

  void add_to_group(grouped_add add) {
    const auto has_same_totals = [&](const grouped_add& other) { return other.to == add.to; };
    if (group_.count == add_group::max_adds || std::any_of(group_.adds, group_.adds + group_.count, has_same_totals))
      queue_group();
    if (add.parts) add.parts += group_.count * merge_metric_parts::threads;
    group_.adds[group_.count++] = add;
  }
  void queue_group() {
    if (group_.count == 0) return;
    const add_group group = std::exchange(group_, {});
    launch(group, {.blocks = group.blocks(), .stream = step_});
    add_group merges;
    for (unsigned i = 0; i < group.count; ++i)
      if (const grouped_add& a = group.adds[i]; a.parts)
        merges.adds[merges.count++] = {
            .data = a.parts, .count = a.blocks, .to = a.to, .what = grouped_add::work::parts};
    if (merges.count > 0) launch(merges, {.blocks = merges.count, .stream = step_});
  }

  /// Makes `next` the step's stream. Adds in the previous stream finish first.
  void enter(stream_view next) {
    const stream_view stream = named_stream(next);
    captured_ = captured_ || is_capturing(stream);
    if (used_ && stream == step_) return void(last_move_ = nullptr);
    queue_group();
    if (used_ && !is_idle_) {
      if (is_capturing(stream) || is_capturing(step_))
        throw setup_error("a metric was updated on two streams, and one of them is being captured",
                          "Update all metrics on one stream, and replay the graph there");
      check_cuda(cudaEventRecord(order_, step_), "cudaEventRecord");
      check_cuda(cudaStreamWaitEvent(stream, order_, 0), "cudaStreamWaitEvent");
    }
    step_ = stream;
    used_ = true;
    work_follows();
  }
  /// Records that the stream has work after the last move, or will have work soon.
  void work_follows() {
    last_move_ = nullptr;
    is_idle_ = false;
  }

  void move_out(slot& s, bool clears) {
    queue_group();
    work_follows();
    launch(store_metric_totals{totals_, s.on_device, o_.max_metrics, clears}, {.stream = step_});
    check_cuda(cudaEventRecord(s.moved, step_), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(side_, s.moved, 0), "cudaStreamWaitEvent");
    check_cuda(
        cudaMemcpyAsync(s.on_host, s.on_device, o_.max_metrics * sizeof(metric_totals), cudaMemcpyDeviceToHost, side_),
        "cudaMemcpyAsync");
    check_cuda(cudaEventRecord(s.landed, side_), "cudaEventRecord");
    last_move_ = &s;
  }

  void wait_for(const slot& s) {
    const current_context here(gpu_);
    const capture_tolerant now;
    check_cuda(cudaEventSynchronize(s.landed), "cudaEventSynchronize");
    if (last_move_ != &s || captured_) return;   // the stream may have further adds
    step_ = side_;                               // the program may destroy its stream now
    is_idle_ = true;
  }

  void refuse_capture(const char* call) const {
    if (is_capturing(step_))
      throw setup_error("metrics::" + std::string(call) + " was called while the step's stream is being captured",
                        "Call it after cudaStreamEndCapture");
  }

  const gpu_context gpu_;
  const cuda_metric_sums_options o_;
  std::vector<slot> ring_;
  void* device_memory_ = nullptr;
  void* pinned_memory_ = nullptr;
  metric_totals* totals_ = nullptr;
  metric_totals* parts_ = nullptr;   // of a long vector, between two kernels
  cudaStream_t side_ = nullptr;
  cudaEvent_t order_ = nullptr;
  stream_view step_{};   // stream of the last add, a result of named_stream()
  std::size_t metrics_ = 0, first_ = 0, pending_ = 0;
  const slot* last_move_ = nullptr;   // the last move, if the stream has no work after it
  bool used_ = false, put_off_ = false, is_group_open_ = false;
  bool captured_ = false;   // whether an add was captured, whose replays are unknown
  bool is_idle_ = false;    // all work on the sums is complete
  add_group group_{};       // adds that have not been queued
};

}   // namespace detail

/// Returns sums in GPU memory for one mr::metrics. Throws setup_error for an option that is 0, io_error from CUDA.
inline std::shared_ptr<device_sums> cuda_metric_sums(const cuda_metric_sums_options& options = {}) {
  return std::make_shared<detail::cuda_device_sums>(options);
}

}}   // namespace millrace
