// h2d: copies from host to GPU from pageable, pinned and registered memory: speed, blocking time, overlap with kernels
//
// For each kind of memory and each size, the benchmark measures:
//   GB/s of single asynchronous copies, from the call to the completion of the event;
//   the share of that time that the call itself blocks the thread;
//   copies concurrent with work in another stream (fills of device memory that last three times as long): the share of
//     their time that is hidden, and the share of their speed that remains.
// The kinds of memory alternate.
#include "harness.hpp"
#ifdef MILLRACE_CUDA
#include "parts/gpu_accelerator.hpp"

#include <array>
#include <cstring>
#include <map>
#include <new>

namespace {

using bench::check_cuda;

double seconds_now() { return bench::seconds_of(CLOCK_MONOTONIC); }

constexpr std::size_t largest_bytes = std::size_t{256} << 20;

enum class kind { pageable, pinned, registered };
constexpr std::array<kind, 3> all_kinds{kind::pageable, kind::pinned, kind::registered};
constexpr const char* names[] = {"pageable", "pinned", "registered"};
const char* name_of(kind k) { return names[static_cast<std::size_t>(k)]; }

/// Host memory of one kind, every page of it written.
class host_buffer {
 public:
  explicit host_buffer(kind k) : kind_(k) {
    if (k == kind::pinned) check_cuda(cudaHostAlloc(&memory_, largest_bytes, cudaHostAllocDefault), "cudaHostAlloc");
    else memory_ = ::operator new(largest_bytes, page);
    std::memset(memory_, 1, largest_bytes);
    if (k == kind::registered)
      check_cuda(cudaHostRegister(memory_, largest_bytes, cudaHostRegisterDefault), "cudaHostRegister");
  }
  host_buffer(const host_buffer&) = delete;
  host_buffer& operator=(const host_buffer&) = delete;
  ~host_buffer() {
    if (kind_ == kind::registered) cudaHostUnregister(memory_);
    if (kind_ == kind::pinned) cudaFreeHost(memory_);
    else ::operator delete(memory_, page);
  }
  const void* data() const { return memory_; }

 private:
  static constexpr std::align_val_t page{4096};
  const kind kind_;
  void* memory_ = nullptr;
};

struct copy_times {
  double call_s = 0, all_s = 0;
};

/// Copies in a separate stream, timed by the host's clock, which includes the call.
class copier {
 public:
  copier() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check_cuda(cudaMalloc(&target_, largest_bytes), "cudaMalloc");
  }
  copier(const copier&) = delete;
  copier& operator=(const copier&) = delete;
  ~copier() {
    cudaFree(target_);
    cudaStreamDestroy(stream_);
  }

  copy_times copy(const host_buffer& from, std::size_t bytes) {
    const double start = seconds_now();
    check_cuda(cudaMemcpyAsync(target_, from.data(), bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
    const double returned = seconds_now();
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return {.call_s = returned - start, .all_s = seconds_now() - start};
  }

 private:
  cudaStream_t stream_ = nullptr;
  void* target_ = nullptr;
};

struct measurements {
  std::vector<double> gb_per_s, call_share, hidden_share, remaining_speed;
};

/// Compares copies concurrent with work of three times their duration with each of the two alone.
struct overlap {
  double hidden_share = 0;      ///< 1: all of the copies' time
  double remaining_speed = 0;   ///< of the copies; 1: as fast as alone
};
overlap copy_during_work(copier& copies, bench::accelerator& chip, const host_buffer& from, std::size_t bytes,
                         double copy_s) {
  const double work_s = std::max(2e-3, 3 * copy_s);
  const int count = std::max(1, static_cast<int>(work_s / (3 * copy_s)));
  const auto timed = [](const auto& body) {
    const double start = seconds_now();
    body();
    return seconds_now() - start;
  };
  const auto copy_all = [&] {
    for (int i = 0; i < count; ++i) copies.copy(from, bytes);
  };
  const double copies_alone = timed(copy_all);
  const double work_alone = timed([&] {
    chip.launch_step(work_s);
    chip.wait();
  });
  double copies_during_work_s = 0;
  const double together = timed([&] {
    chip.launch_step(work_s);
    copies_during_work_s = timed(copy_all);
    chip.wait();
  });
  static_cast<void>(chip.take_steps());
  const double hidden = (copies_alone + work_alone - together) / std::min(copies_alone, work_alone);
  return {.hidden_share = std::clamp(hidden, 0.0, 1.0), .remaining_speed = copies_alone / copies_during_work_s};
}

void measure(bench::harness& run, bench::accelerator& chip) {
  copier copies;
  std::vector<std::unique_ptr<host_buffer>> buffers;
  for (const kind k : all_kinds) buffers.push_back(std::make_unique<host_buffer>(k));
  std::map<std::size_t, std::array<measurements, 3>> all;
  const int rounds = run.quick() ? 5 : 15;
  for (std::size_t bytes = std::size_t{64} << 10; bytes <= largest_bytes; bytes *= 4)
    for (int round = 0; round <= rounds; ++round)
      for (const kind k : all_kinds) {
        const auto which = static_cast<std::size_t>(k);
        const copy_times c = copies.copy(*buffers[which], bytes);
        const overlap o = copy_during_work(copies, chip, *buffers[which], bytes, c.all_s);
        if (round == 0) continue;   // the first round of a size is a warm-up
        all[bytes][which].gb_per_s.push_back(1e-9 * static_cast<double>(bytes) / c.all_s);
        all[bytes][which].call_share.push_back(100 * c.call_s / c.all_s);
        all[bytes][which].hidden_share.push_back(100 * o.hidden_share);
        all[bytes][which].remaining_speed.push_back(100 * o.remaining_speed);
      }
  for (const auto& [bytes, kinds] : all) {
    std::printf("\n%zu kB\n", bytes >> 10);
    for (const kind k : all_kinds) {
      const measurements& f = kinds[static_cast<std::size_t>(k)];
      std::printf("  %-10s %s GB/s; the call %s %% of it; with other work %s %% hidden, at %s %% of the speed\n",
                  name_of(k), bench::spread(f.gb_per_s).c_str(), bench::spread(f.call_share).c_str(),
                  bench::spread(f.hidden_share).c_str(), bench::spread(f.remaining_speed).c_str());
      const std::string which = "_" + std::string(name_of(k)) + "_" + std::to_string(bytes >> 10) + "kB";
      run.result("h2d" + which, bench::median(f.gb_per_s), "GB/s");
      // Large asynchronous copies from pinned memory must not block the thread or slow the other stream.
      const bool large_pinned = k == kind::pinned && bytes >= std::size_t{1} << 20;
      run.result("h2d_call" + which, bench::median(f.call_share), "%",
                 large_pinned ? bench::at_most(20) : bench::goal{});
      run.result("h2d_hidden" + which, bench::median(f.hidden_share), "%",
                 large_pinned ? bench::at_least(90) : bench::goal{});
      run.result("h2d_speed_beside_work" + which, bench::median(f.remaining_speed), "%",
                 large_pinned ? bench::at_least(90) : bench::goal{});
    }
  }
  const auto& largest = all.rbegin()->second;
  run.result("pinned_over_pageable", bench::median(largest[1].gb_per_s) / bench::median(largest[0].gb_per_s), "x");
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    std::string why;
    const bool has_gpu = bench::gpu_found(why);
    bench::harness run(argc, argv, "h2d", {{"GPU", has_gpu ? bench::gpu_name() : "none (" + why + ")"}});
    if (!has_gpu) return run.nothing_measured("copies to a GPU need one");
    const auto chip = bench::gpu_accelerator::find();
    measure(run, *chip);
    return run.finish();
  });
}

#else

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "h2d", {{"GPU", "none (this program was built without CUDA)"}});
  return run.nothing_measured("copies to a GPU need the CUDA toolkit when this is built, and a GPU");
}

#endif
