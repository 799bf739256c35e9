// The measurements of the program gpu_rows: launches, waits, copies, pinned memory, kernels and graphs.
#include "gpu_rows.hpp"
#if !defined(MILLRACE_FAKE_CUDA) && __has_include(<cupti.h>)
#include <cupti.h>
#include <dlfcn.h>
#endif

#include <sys/mman.h>

#include <functional>
#include <optional>
#include <thread>
#include <utility>

namespace gpu_rows {

namespace {

// Waits of the calling thread. The fake runtime counts them, and CUPTI counts those inside the driver.
#ifdef MILLRACE_FAKE_CUDA
class wait_counter {
 public:
  static bool exists() { return true; }
  std::size_t waits() const { return fake_cuda::violations().size() - before_; }

 private:
  std::size_t before_ = fake_cuda::violations().size();
  fake_cuda::no_waiting_here guard_{};
};
#elif __has_include(<cupti.h>)
thread_local std::size_t waits_of_thread = 0;
class wait_counter {
 public:
  static bool exists() { return library() != nullptr; }
  wait_counter() {
    const auto subscribe = reinterpret_cast<decltype(&cuptiSubscribe)>(dlsym(library(), "cuptiSubscribe"));
    const auto enable = reinterpret_cast<decltype(&cuptiEnableDomain)>(dlsym(library(), "cuptiEnableDomain"));
    require(subscribe && enable && subscribe(&subscriber_, &count, nullptr) == CUPTI_SUCCESS &&
                enable(1, subscriber_, CUPTI_CB_DOMAIN_SYNCHRONIZE) == CUPTI_SUCCESS &&
                enable(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS,
            "CUPTI starts");
  }
  wait_counter(const wait_counter&) = delete;
  wait_counter& operator=(const wait_counter&) = delete;
  ~wait_counter() {
    const auto unsubscribe = reinterpret_cast<decltype(&cuptiUnsubscribe)>(dlsym(library(), "cuptiUnsubscribe"));
    if (unsubscribe) unsubscribe(subscriber_);
  }
  std::size_t waits() const { return waits_of_thread - before_; }

 private:
  static void* library() {
    static void* const handle = [] {
      void* one = nullptr;
      for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
        if (!one) one = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
      return one;
    }();
    return handle;
  }
  static void CUPTIAPI count(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
    if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
      ++waits_of_thread;
      return;
    }
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    const std::string_view name = call.functionName ? call.functionName : "";
    const bool blocks = name.find("Synchronize") != name.npos || name.starts_with("cuMemFree") ||
                        name.starts_with("cuMemAlloc") || name.starts_with("cuMemHost") ||
                        (name.starts_with("cuMemcpy") && name.find("Async") == name.npos);
    if (call.callbackSite == CUPTI_API_ENTER && blocks) ++waits_of_thread;
  }

  std::size_t before_ = waits_of_thread;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};
#else
class wait_counter {
 public:
  static bool exists() { return false; }
  std::size_t waits() const { return 0; }
};
#endif

bench::goal unless_quick(const bench::harness& run, bench::goal target) { return run.quick() ? bench::goal{} : target; }

}   // namespace

int first(bench::harness& run) {
  const gpu_stream step;
  step.synchronize();   // the context exists
  run.result("cuda_metric_sums", 1e3 * seconds_of([] { make_sums(); }), "ms");
  for (const timed_kernel& kernel : timed_kernels(true))
    run.result("first_" + kernel.name, 1e3 * seconds_of([&] {
                                         kernel.launch(step);
                                         step.synchronize();
                                       }),
               "ms", unless_quick(run, bench::at_most(5)));
  return run.finish();
}

int waits(bench::harness& run) {
  if (!wait_counter::exists()) {
    std::printf("skipped: libcupti is not installed\n");
    return 77;
  }
  const gpu_stream step;
  const gpu_memory model(8'000);
  {
    const wait_counter counter;
    step.synchronize();
    run.result("waits_of_a_synchronization", static_cast<double>(counter.waits()), "calls", bench::at_least(1));
  }
  std::vector<mr::row> rows;
  mr::log out({}, row_list{rows});
  mr::metrics metrics({.every = 20, .device = make_sums()});
  auto mean = metrics.mean("number");
  const sample_set samples(1'000, 8, 210);
  auto session = samples.session({.device = mr::cuda_device(0), .stream = step});
  std::optional<wait_counter> counter;
  for (auto& b : session) {
    if (b.step() == 10) counter.emplace();   // the kernels are loaded
    check_cuda(cudaMemcpyAsync(model.get(), b.get<&example::bytes>().data, 8'000, cudaMemcpyDeviceToDevice, step),
               "cudaMemcpyAsync");
    mean.add(b.get<&example::number>(), {.stream = step});
    metrics.maybe_log(b.step(), out);
    if (b.step() == 209) {
      run.result("waits_of_200_steps", static_cast<double>(counter->waits()), "calls", bench::at_most(0));
      counter.reset();
    }
  }
  return run.finish();
}

namespace {

/// GB/s of copies of this size from pinned memory, one after the other.
double ceiling(const void* pinned, void* target, std::size_t bytes, int copies, cudaStream_t stream) {
  const double seconds = seconds_of([&] {
    for (int i = 0; i < copies; ++i)
      check_cuda(cudaMemcpyAsync(target, pinned, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  });
  return 1e-9 * static_cast<double>(bytes) * copies / seconds;
}

}   // namespace

int session(bench::harness& run) {
  struct setting {
    std::size_t rows, row_bytes, slots;
    bool legacy;
  };
  std::vector<setting> settings;
  for (const auto& [rows, row_bytes] :
       run.quick() ? std::vector<std::pair<std::size_t, std::size_t>>{{8, 1'000}}
                   : std::vector<std::pair<std::size_t, std::size_t>>{{8, 32'768}, {256, 150'528}, {256, 1 << 20}})
    for (const std::size_t slots : {2, 3, 4})
      for (const bool legacy : {false, true})
        if (!legacy || slots == 3) settings.push_back({rows, row_bytes, slots, legacy});
  const gpu_stream copies, own;
  for (const setting& s : settings) {
    const std::size_t bytes = s.rows * s.row_bytes, warm_up = 16;
    const std::size_t batches = warm_up + std::clamp<std::size_t>((std::size_t{12} << 30) / bytes, 40, 4'000);
    const sample_set samples(s.row_bytes, s.rows, run.quick() ? 40 : batches);
    const gpu_memory target(bytes), model(bytes);
    void* pinned = nullptr;
    check_cuda(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    std::memset(pinned, 1, bytes);
    const auto enough = static_cast<int>(std::clamp<std::size_t>((std::size_t{2} << 30) / bytes, 8, 400));
    const int count = run.quick() ? 2 : enough;
    ceiling(pinned, target.get(), bytes, 2, copies);
    const double before = ceiling(pinned, target.get(), bytes, count, copies);
    const cudaStream_t step = s.legacy ? nullptr : static_cast<cudaStream_t>(own);
    double start = 0;
    {
      auto session = samples.session({.device = mr::cuda_device(0), .stream = step, .slots = s.slots});
      for (auto& b : session) {
        if (b.step() == warm_up) {
          check_cuda(cudaStreamSynchronize(step), "cudaStreamSynchronize");
          start = seconds_now();
        }
        check_cuda(cudaMemsetAsync(model.get(), 1, bytes / 4, step), "cudaMemsetAsync");   // a kernel
      }
      check_cuda(cudaStreamSynchronize(step), "cudaStreamSynchronize");
    }
    const double rate = 1e-9 * static_cast<double>(bytes * (samples.batches - warm_up)) / (seconds_now() - start);
    const double best = std::max(before, ceiling(pinned, target.get(), bytes, count, copies));
    check_cuda(cudaFreeHost(pinned), "cudaFreeHost");
    const std::string name = std::to_string(bytes >> 10) + "kB_slots" + std::to_string(s.slots) +
                             (s.legacy ? "_legacy" : "");
    run.result("session_" + name, rate, "GB/s");
    run.result("of_ceiling_" + name, 100 * rate / best, "%",
               bytes > 30'000'000 && s.slots >= 3 ? unless_quick(run, bench::at_least(95)) : bench::goal{});
  }
  return run.finish();
}

namespace {

/// Calls body(begin, end) for parts of [0, bytes) on several threads.
template <class Body>
void in_parts(std::size_t bytes, const Body& body) {
  const std::size_t threads = std::min<std::size_t>(16, mr::usable_cores());
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t)
    all.emplace_back([=] { body(bytes * t / threads, bytes * (t + 1) / threads); });
  for (std::thread& t : all) t.join();
}

}   // namespace

int pinned(bench::harness& run) {
  const std::size_t bytes = run.quick() ? std::size_t{4} << 20 : std::size_t{1} << 30;
  const double gigabytes = 1e-9 * static_cast<double>(bytes);
  const gpu_stream copies;
  const gpu_memory target(bytes);
  const auto backend = mr::cuda_device(0).backend();
  enum class kind { host_alloc, registered, huge, slots };
  const char* const names[] = {"cudaHostAlloc", "registered", "registered_huge", "slots_of_millrace"};
  for (const kind k : {kind::host_alloc, kind::registered, kind::huge, kind::slots}) {
    void* memory = nullptr;
    const auto write = [&](int value) {
      in_parts(bytes, [&](std::size_t begin, std::size_t end) {
        std::memset(static_cast<char*>(memory) + begin, value, end - begin);
      });
    };
    const double get_s = seconds_of([&] {
      if (k == kind::slots) memory = backend->allocate_host(bytes);
      else if (k == kind::host_alloc) check_cuda(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "cudaHostAlloc");
      else {
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(memory != MAP_FAILED, "mmap succeeds");
        ::madvise(memory, bytes, k == kind::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        write(1);
        check_cuda(cudaHostRegister(memory, bytes, cudaHostRegisterDefault), "cudaHostRegister");
      }
    });
    write(2);
    const double write_s = seconds_of([&] { write(3); });
    const double rate = ceiling(memory, target.get(), bytes, run.quick() ? 1 : 4, copies);
    const double give_back_s = seconds_of([&] {
      if (k == kind::slots) backend->free_host(memory);
      else if (k == kind::host_alloc) check_cuda(cudaFreeHost(memory), "cudaFreeHost");
      else {
        check_cuda(cudaHostUnregister(memory), "cudaHostUnregister");
        ::munmap(memory, bytes);
      }
    });
    const std::string name = names[static_cast<int>(k)];
    run.result("get_" + name, get_s / gigabytes, "s/GB");
    run.result("give_back_" + name, give_back_s / gigabytes, "s/GB");
    run.result("write_" + name, gigabytes / write_s, "GB/s");
    run.result("copy_" + name, rate, "GB/s");
  }
  return run.finish();
}

namespace {

/// The median time of one call of `launch` by the GPU's clock.
double gpu_seconds(const gpu_stream& step, bool quick, const std::function<void(mr::stream_view)>& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  for (cudaEvent_t* const event : {&begin, &end})
    check_cuda(cudaEventCreateWithFlags(event, cudaEventDefault), "cudaEventCreateWithFlags");
  std::vector<double> seconds;
  const int calls = quick ? 1 : 20;
  for (int round = 0; round < (quick ? 2 : 8); ++round) {
    check_cuda(cudaEventRecord(begin, step), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) launch(step);
    check_cuda(cudaEventRecord(end, step), "cudaEventRecord");
    step.synchronize();
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (round > 0) seconds.push_back(1e-3 * static_cast<double>(ms) / calls);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return bench::median(seconds);
}

}   // namespace

int kernels(bench::harness& run) {
  const gpu_stream step;
  const std::size_t half = run.quick() ? 4'096 : std::size_t{512} << 20;
  const gpu_memory from(half), to(half);
  check_cuda(cudaMemset(from.get(), 77, half), "cudaMemset");
  const double copy_s = gpu_seconds(step, run.quick(), [&](mr::stream_view s) {
    check_cuda(cudaMemcpyAsync(to.get(), from.get(), half, cudaMemcpyDeviceToDevice, s), "cudaMemcpyAsync");
  });
  const double bytes_per_s = 2 * static_cast<double>(half) / copy_s;
  run.result("copy_on_device", 1e-9 * bytes_per_s, "GB/s");
  for (const timed_kernel& kernel : timed_kernels(run.quick())) {
    const double seconds = gpu_seconds(step, run.quick(), kernel.launch);
    run.result("time_" + kernel.name, 1e6 * seconds, "us");
    run.result("over_copy_" + kernel.name, seconds * bytes_per_s / kernel.bytes, "x",
               kernel.allowed_ratio > 0 ? unless_quick(run, bench::at_most(kernel.allowed_ratio)) : bench::goal{});
  }
  return run.finish();
}

int graph(bench::harness& run) {
  constexpr std::size_t steps = 1'000, every = 100;
  const gpu_stream step;
  const sample_set samples(1'000, 8, steps);
  const gpu_memory model(samples.batch_bytes());
  std::vector<mr::row> rows;
  double start = 0, seconds = 0;
  {
    mr::log out({}, row_list{rows});
    mr::metrics metrics({.every = every, .device = make_sums()});
    auto mean = metrics.mean("number");
    auto session = samples.session({.device = mr::cuda_device(0), .stream = step, .slots = 3, .fixed_slots = true});
    std::vector<cudaGraphExec_t> step_of_slot(session.slots());
    for (auto& b : session) {
      auto& graph_step = step_of_slot[b.slot()];
      if (!graph_step) {
        cudaGraph_t captured = nullptr;
        check_cuda(cudaStreamBeginCapture(step, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        mean.add(b.get<&example::number>(), {.stream = step});
        check_cuda(cudaMemcpyAsync(model.get(), b.get<&example::bytes>().data, samples.batch_bytes(),
                                   cudaMemcpyDeviceToDevice, step),
                   "cudaMemcpyAsync");
        check_cuda(cudaStreamEndCapture(step, &captured), "cudaStreamEndCapture");
        check_cuda(cudaGraphInstantiate(&graph_step, captured, 0), "cudaGraphInstantiate");
        check_cuda(cudaGraphDestroy(captured), "cudaGraphDestroy");
      }
      if (b.step() == every) start = seconds_now();
      check_cuda(cudaGraphLaunch(graph_step, step), "cudaGraphLaunch");
      metrics.maybe_log(b.step(), out);
      if (b.step() == steps - 1) step.synchronize(), seconds = seconds_now() - start;
    }
    require(model.content() == samples.content(steps - 1), "the last replay read the last batch");
    metrics.finish(out);
    for (const cudaGraphExec_t one : step_of_slot) check_cuda(cudaGraphExecDestroy(one), "cudaGraphExecDestroy");
  }
  require(rows.size() == steps / every, "one row for every 100 steps");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double sum = 0;
    for (std::size_t n = r * every * 8; n < (r + 1) * every * 8; ++n) sum += static_cast<double>(n % 1'024);
    require(rows[r].find("number").value_or(-1) == sum / (every * 8), "each row is the mean of its 100 steps");
  }
  run.result("step_with_graph", 1e6 * seconds / (steps - every), "us");
  return run.finish();
}

}   // namespace gpu_rows
