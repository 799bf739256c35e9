// Kernels for tests without a GPU: to be included before any .cuh header, which are then compiled for the host.
//
// launch() queues a copy of the body in the stream as a host function of the fake CUDA runtime. A block is one call
// with loops over its threads, in an order that produces the same bits as the GPU's code. Under
// `kernels_run_in_threads`, each thread of a block is a thread of the host instead.
//
// run_in_threads() has one thread of the host for each thread of a block. kernel_block_team then executes the same code
// as on a GPU: barriers, exchanges between the lanes of a warp, shared memory.
//
//   run_in_threads(body, 4);                             // 4 blocks, two at a time
//   run_in_threads(body, 4, warp_order::descending);     // one at a time; warp 0 is the last to reach each barrier
//
// ThreadSanitizer reports races between threads and between blocks: only a barrier orders memory accesses, exchanges do
// not. In the ordered modes, warps run one after the other between barriers. Therefore a missing barrier also changes
// results without ThreadSanitizer. Shared memory and unwritten words begin as 0xA5.
// Errors: broken_kernel if a thread waits for one that cannot arrive, because it has ended or waits for something else.
// Cost: about 50 us for each thread of a kernel, and a switch of threads for each word that a thread exchanges.
#pragma once

#define MILLRACE_KERNELS_ON_HOST

#include <millrace/device/kernel.cuh>

#include "cuda/fake/fake_cuda.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// Thrown if the threads of a block wait for each other forever.
struct broken_kernel : std::logic_error {
  using std::logic_error::logic_error;
};

/// The order of the warps between two barriers.
enum class warp_order { together, ascending, descending };

/// The common state of the threads of one block.
class block_of_threads {
 public:
  block_of_threads(unsigned threads, warp_order order) : lanes_(threads), order_(order) {
    std::memset(shared_, 0xA5, sizeof(shared_));
  }

  void begin(unsigned thread) { wait_for_turn(thread); }

  void end(unsigned thread) {
    // The number of exchanges remains: another lane may read it before it reads the last word of this one.
    lanes_[thread].barriers = ended;
    lanes_[thread].publish();
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  void synchronize(unsigned thread) {
    lane& me = lanes_[thread];
    ++me.barriers;
    me.publish();
    {
      std::unique_lock lock(mutex_);
      const std::uint64_t mine = generation_;
      if (++waiting_ == lanes_.size()) {
        waiting_ = 0;
        ++generation_;
        changed_.notify_all();
      } else {
        changed_.wait(lock, [&] { return generation_ != mine || ended_ > 0; });
        if (generation_ == mine)
          throw broken_kernel("thread " + std::to_string(thread) + " waits at a barrier that another did not reach");
      }
    }
    wait_for_turn(thread);
  }

  /// The rendezvous uses relaxed atomics, because an exchange does not order other memory accesses.
  unsigned from_lane_above(unsigned thread, unsigned word, unsigned step) {
    lane& me = lanes_[thread];
    const std::uint32_t number = ++me.exchanges;
    me.publish();
    me.sent[number % 2].store(std::uint64_t{number} << 32 | word, std::memory_order_relaxed);
    const unsigned first = thread / warp_size * warp_size;
    unsigned received = word;   // remains the thread's own word if that lane is in the next warp
    for (unsigned l = first; l < first + warp_size; ++l) {
      std::uint64_t sent = 0;
      // No lane sends twice more before this one has sent its next word.
      while ((sent = lanes_[l].sent[number % 2].load(std::memory_order_relaxed)) >> 32 != number) {
        const std::uint64_t other = lanes_[l].progress.load(std::memory_order_relaxed);
        if (other >> 32 > me.barriers && static_cast<std::uint32_t>(other) < number)
          throw broken_kernel("thread " + std::to_string(thread) + " waits for a word of thread " + std::to_string(l) +
                              ", which has ended or waits at a barrier");
        std::this_thread::yield();
      }
      if (l == thread + step) received = static_cast<unsigned>(sent);
    }
    return received;
  }

  unsigned char* shared_memory() noexcept { return shared_; }

 private:
  static constexpr unsigned warp_size = 32;
  static constexpr std::uint32_t ended = ~std::uint32_t{0};   // more than all barriers

  struct lane {
    std::uint32_t barriers = 0, exchanges = 0;   // used by its own thread
    std::atomic<std::uint64_t> progress{0};      // both in one word
    std::atomic<std::uint64_t> sent[2]{};        // number of the exchange and its word

    void publish() {
      progress.store(std::uint64_t{barriers} << 32 | exchanges, std::memory_order_relaxed);
    }
  };

  /// Waits until all threads of the preceding warps have reached their next barrier.
  void wait_for_turn(unsigned thread) {
    if (order_ == warp_order::together) return;
    const unsigned warp = thread / warp_size;
    const unsigned from = order_ == warp_order::ascending ? 0 : (warp + 1) * warp_size;
    const unsigned to = order_ == warp_order::ascending ? warp * warp_size : static_cast<unsigned>(lanes_.size());
    for (unsigned t = from; t < to; ++t)
      while (lanes_[t].progress.load(std::memory_order_relaxed) >> 32 <= lanes_[thread].barriers)
        std::this_thread::yield();
  }

  std::vector<lane> lanes_;
  const warp_order order_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t waiting_ = 0, ended_ = 0;
  std::uint64_t generation_ = 0;
  alignas(16) unsigned char shared_[48 << 10];   // the limit of CUDA
};

/// The operations that kernel_block_team needs (gpu_thread), for a thread of the host.
class host_thread {
 public:
  host_thread(block_of_threads& block, unsigned index) noexcept : block_(&block), index_(index) {}

  unsigned index() const noexcept { return index_; }
  void synchronize() const { block_->synchronize(index_); }
  unsigned from_lane_above(unsigned word, unsigned step) const { return block_->from_lane_above(index_, word, step); }
  template <std::size_t Bytes>
  unsigned char* shared_memory() const noexcept {
    static_assert(Bytes <= 48 << 10);
    return block_->shared_memory();
  }
  void add(std::uint64_t& to, std::uint64_t value) const {
    std::atomic_ref(to).fetch_add(value, std::memory_order_relaxed);
  }

 private:
  block_of_threads* block_;
  unsigned index_;
};

/// Runs the body for each block; two blocks at a time if their warps run together. Rethrows the exception of a thread.
template <class Body>
void run_in_threads(const Body& body, unsigned blocks, warp_order order = warp_order::together) {
  const unsigned at_once = order == warp_order::together ? 2 : 1;
  for (unsigned first = 0; first < blocks; first += at_once) {
    std::mutex mutex;
    std::exception_ptr failure;
    std::vector<std::unique_ptr<block_of_threads>> states;
    std::vector<std::thread> threads;
    for (unsigned b = first; b < std::min(blocks, first + at_once); ++b) {
      states.push_back(std::make_unique<block_of_threads>(Body::threads, order));
      for (unsigned t = 0; t < Body::threads; ++t)
        threads.emplace_back([&, b, t, &state = *states.back()] {
          try {
            state.begin(t);
            body(millrace::detail::kernel_block_team<Body::threads, host_thread>(b, blocks, {state, t}));
          } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
          }
          state.end(t);
        });
    }
    for (auto& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
  }
}

/// Kernels that are launched during its lifetime run in threads.
class kernels_run_in_threads {
 public:
  explicit kernels_run_in_threads(warp_order order) { current() = order; }
  kernels_run_in_threads(const kernels_run_in_threads&) = delete;
  kernels_run_in_threads& operator=(const kernels_run_in_threads&) = delete;
  ~kernels_run_in_threads() { current().reset(); }

  static std::optional<warp_order>& current() {
    static std::optional<warp_order> order;
    return order;
  }
};

/// Has the functions of kernel_block_team for a complete block.
template <unsigned Threads>
class block_of_loops {
 public:
  block_of_loops(unsigned block, unsigned blocks) noexcept : block_(block), blocks_(blocks) {}
  unsigned block() const noexcept { return block_; }
  unsigned blocks() const noexcept { return blocks_; }
  block_of_loops part(unsigned first, unsigned blocks) const noexcept { return {block_ - first, blocks}; }

  template <class F>
  void each(const F& f) const {
    for (unsigned t = 0; t < Threads; ++t) f(t);
  }
  template <class F>
  void once(const F& f) const {
    f();
  }
  void add(std::uint64_t& to, std::uint64_t value) const noexcept { to += value; }

  template <class F>
  auto reduce(const F& f) const {
    using part = std::remove_cv_t<decltype(f(0U))>;
    constexpr unsigned lanes = 32;
    part all{};
    for (unsigned w = 0; w < Threads / lanes; ++w) {
      part parts[lanes];
      for (unsigned l = 0; l < lanes; ++l) parts[l] = f(w * lanes + l);
      for (unsigned step = lanes / 2; step > 0; step /= 2)
        for (unsigned l = 0; l < step; ++l) parts[l].merge(parts[l + step]);
      if (w == 0) all = parts[0];
      else all.merge(parts[0]);
    }
    return all;
  }

 private:
  unsigned block_, blocks_;
};

template <class Body>
void run_in_loops(const Body& body, unsigned blocks) {
  for (unsigned b = 0; b < blocks; ++b) body(block_of_loops<Body::threads>(b, blocks));
}

namespace queued_kernels {

template <class Body>
struct launched {
  Body body;   // first, because the fake runtime searches it for addresses
  unsigned blocks;
  std::optional<warp_order> threads;

  static void run(void* self) {
    const auto& work = *static_cast<const launched*>(self);
    if (work.threads) run_in_threads(work.body, work.blocks, *work.threads);
    else run_in_loops(work.body, work.blocks);
  }
};

inline void queue(std::shared_ptr<void> launch, std::size_t bytes, cudaHostFn_t run, millrace::stream_view stream) {
  struct work {
    std::shared_ptr<void> launch;
    cudaHostFn_t run;
    static void run_often(void* self) { static_cast<work*>(self)->run(static_cast<work*>(self)->launch.get()); }
    static void run_once(void* self) {
      const std::unique_ptr<work> ends(static_cast<work*>(self));
      run_often(self);
    }
  };
  // They must outlive their graph, because a graph may run any number of times.
  static std::vector<std::unique_ptr<work>> of_graphs;
  auto w = std::make_unique<work>(work{std::move(launch), run});
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  millrace::detail::check_cuda(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
  const bool repeats = capture != cudaStreamCaptureStatusNone;
  fake_cuda::next_kernel(w->launch.get(), bytes);
  millrace::detail::check_cuda(cudaLaunchHostFunc(stream, repeats ? &work::run_often : &work::run_once, w.get()),
                               "cudaLaunchHostFunc");
  if (repeats) of_graphs.push_back(std::move(w));
  else w.release();
}

}  // namespace queued_kernels

template <class Body>
void millrace::detail::launch(const Body& body, const launch_options& how) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (how.blocks == 0) return;
  using work = queued_kernels::launched<Body>;
  queued_kernels::queue(std::make_shared<work>(work{body, how.blocks, kernels_run_in_threads::current()}), sizeof(Body),
                        &work::run, how.stream);
}
