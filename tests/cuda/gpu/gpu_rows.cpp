// The measurements and the faults of rows.py: one part in each process. Linked with the CUDA runtime or the fake one.
//
//   gpu_rows --only session            # parts: see the table before main(); prints `result:` lines
//   gpu_rows --only session --quick    # small sizes without targets, for the fake runtime
//
// Exit status: 0 if the part ran, also if a target was missed; 77 if it cannot run here; 1 with a message otherwise.
#include "gpu_rows.hpp"

#include <millrace/sources/from.hpp>

#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

namespace gpu_rows {

mr::session<&example::bytes, &example::number> sample_set::session(mr::to_device_options where) const {
  std::vector<int> numbers(rows * batches);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto prepare = [from = memory.data(), bytes = row_bytes](int n) {
    const std::size_t start = static_cast<std::size_t>(n) % row_starts;
    return example{{from + start, bytes}, static_cast<float>(n % 1'024)};
  };
  return mr::session(mr::from(std::move(numbers)) | mr::map(prepare) |
                         mr::batch<&example::bytes, &example::number>({.size = rows}) | mr::prefetch({.batches = 3}) |
                         mr::to_device(std::move(where)),
                     {.notice = mr::quiet});
}

namespace {

/// Allocates and overwrites memory of these sizes, which may be memory that was just freed.
void overwrite_free_memory(const std::vector<std::size_t>& sizes) {
  const gpu_stream other;
  std::vector<std::unique_ptr<gpu_memory>> all;
  for (int round = 0; round < 3; ++round)
    for (const std::size_t bytes : sizes) {
      all.push_back(std::make_unique<gpu_memory>(bytes));
      check_cuda(cudaMemsetAsync(all.back()->get(), 0xA5, bytes, other), "cudaMemsetAsync");
    }
  other.synchronize();
}

int destruction(bench::harness& run) {
  const gpu_stream step;
  const sample_set samples(30'000, 8, 20);
  const std::size_t bytes = samples.batch_bytes();
  const gpu_memory ones(8 * sizeof(float));
  const std::vector<float> values(8, 1);
  check_cuda(cudaMemcpy(ones.get(), values.data(), 8 * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  spin(0.01, step);
  step.synchronize();

  const double metrics_s = seconds_of([&] {
    mr::metrics metrics({.device = make_sums()});
    auto mean = metrics.mean("number");
    spin(200, step);
    mean.add(mr::tensor_view<const float, 1>{.data = static_cast<const float*>(ones.get()),
                                             .shape = {8},
                                             .memory = mr::memory_kind::device},
             {.stream = step});
  });
  mr::metrics again({.device = make_sums()});   // probably in the same memory
  auto mean = again.mean("number");
  step.synchronize();
  mean.add(3);
  require(again.read_now().find("number").value_or(-1) == 3, "new metrics contain no value of destroyed ones");
  run.result("destroy_metrics_with_pending_add", 1e3 * metrics_s, "ms");

  // A batch is released and its session ends while the step that reads the batch waits in the stream; then the session
  // ends first.
  for (const bool batch_first : {true, false}) {
    const gpu_memory copies(2 * bytes);
    check_cuda(cudaMemset(copies.get(), 0, 2 * bytes), "cudaMemset");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::optional session(samples.session({.device = mr::cuda_device(0), .stream = step, .slots = 2}));
    std::optional first_batch(session->next()), second_batch(session->next());
    spin(100, step);
    int number = 0;
    for (const auto* b : {&*first_batch, &*second_batch})
      check_cuda(cudaMemcpyAsync(static_cast<std::uint8_t*>(copies.get()) + bytes * static_cast<std::size_t>(number++),
                                 b->get<&example::bytes>().data, bytes, cudaMemcpyDeviceToDevice, step),
                 "cudaMemcpyAsync");
    const double seconds = seconds_of([&] {
      if (!batch_first) session.reset();
      first_batch.reset();
      second_batch.reset();
      session.reset();
    });
    overwrite_free_memory({bytes, samples.rows * sizeof(float), bytes + samples.rows * sizeof(float)});
    step.synchronize();
    std::vector<std::uint8_t> expected = samples.content(0);
    const std::vector<std::uint8_t> second = samples.content(1);
    expected.insert(expected.end(), second.begin(), second.end());
    require(copies.content() == expected, "a step reads its batch, which was released before the step ran");
    run.result(batch_first ? "destroy_batch_then_session" : "destroy_session_then_batch", 1e3 * seconds, "ms");
  }
  return run.finish();
}

int fault(bench::harness& run) {
  const gpu_stream step;
  const sample_set samples(1'000, 8, 400);
  std::size_t batches = 0;
  std::string message;
  try {
    auto session = samples.session({.device = mr::cuda_device(0), .stream = step});
    for (auto& b : session) {
      static_cast<void>(b);
      if (++batches == 5) write_to_nowhere(step);
      if (batches > 5) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const mr::io_error& e) {
    message = e.what();
  }
  std::printf("%s\n", message.c_str());
  require(message.find("llegal") != message.npos, "an error that names the illegal address");
  run.result("batches_until_the_error", static_cast<double>(batches - 5), "batches");
  return run.finish();
}

int contexts(bench::harness& run) {
  int gpus = 0;
  check_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  ::setenv("LOCAL_RANK", std::to_string(gpus - 1).c_str(), 1);
  const sample_set samples(1'000, 8, 20);
  std::size_t batches = 0;
  // The main thread never selects a GPU, nor do the threads that release batches and the session.
  std::optional<mr::device> device(mr::best_device());
  std::thread([&] {
    std::optional session(samples.session({.device = *device}));
    while (auto b = session->next()) {
      ++batches;
      std::thread([&] { b.release(); }).join();
    }
    std::thread([&] { session.reset(); }).join();
  }).join();
  require(batches == 20, "20 batches");
  void* function = nullptr;
#if CUDART_VERSION >= 12050
  check_cuda(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &function, 12'000, cudaEnableDefault),
             "cudaGetDriverEntryPointByVersion");
#else
  check_cuda(cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &function, cudaEnableDefault),
             "cudaGetDriverEntryPoint");
#endif
  const auto state = reinterpret_cast<cudaError_t (*)(int, unsigned*, int*)>(function);
  int others = 0;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    unsigned flags = 0;
    int active = 0;
    require(state && state(gpu, &flags, &active) == cudaSuccess, "the driver returns the state of each context");
    if (gpu == gpus - 1) require(active, "the GPU of this rank is in use");
    else others += active;
  }
  run.result("contexts_on_other_GPUs", others, "of", bench::at_most(0));
  run.result("other_GPUs", gpus - 1, "GPUs");
  std::size_t free_bytes = 0, all_bytes = 0;
  check_cuda(cudaSetDevice(gpus - 1), "cudaSetDevice");
  check_cuda(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
  run.result("memory_in_use_on_own_GPU", static_cast<double>((all_bytes - free_bytes) >> 20), "MiB");
  return run.finish();
}

/// Behavior that the documentation of CUDA leaves open, as numbers of cudaError_t. The fake runtime is strict.
int questions(bench::harness& run) {
  const gpu_stream stream;
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  const auto end_capture = [&] {
    cudaGraph_t captured = nullptr;
    const cudaError_t result = cudaStreamEndCapture(stream, &captured);
    if (captured) cudaGraphDestroy(captured);
    static_cast<void>(cudaGetLastError());
    return static_cast<double>(result);
  };
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  run.result("captured_wait_for_an_event_never_recorded", cudaStreamWaitEvent(stream, event, 0), "error");
  run.result("end_of_that_capture", end_capture(), "error");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
  run.result("query_of_a_captured_event", cudaEventQuery(event), "error");
  run.result("end_of_that_capture_too", end_capture(), "error");
  void* memory = &event;
  run.result("allocation_of_0_bytes", cudaMalloc(&memory, 0), "error");
  run.result("its_pointer_is_null", memory == nullptr, "bool");
  cudaFree(memory);
  cudaEventDestroy(event);
  return run.finish();
}

struct part {
  const char* name;
  int (*run)(bench::harness&);
};
constexpr part parts[] =
    {{"first", first},       {"waits", waits},        {"session", session},         {"pinned", pinned},
     {"kernels", kernels},   {"graph", graph},        {"destruction", destruction}, {"fault", fault},
     {"contexts", contexts}, {"questions", questions}};

}   // namespace

}   // namespace gpu_rows

int main(int argc, char** argv) {
  const std::string_view name = argc > 2 && std::string_view(argv[1]) == "--only" ? argv[2] : "";
  for (const gpu_rows::part& p : gpu_rows::parts)
    if (name == p.name)
      return bench::run_guarded([&] {
#ifdef MILLRACE_FAKE_CUDA
        fake_cuda::reset({.devices = name == "contexts" ? 4 : 1, .background_threads = 4});
#endif
        int gpus = 0;
        if (const cudaError_t result = cudaGetDeviceCount(&gpus); result != cudaSuccess || gpus == 0) {
          std::printf("skipped: no GPU (%s)\n", cudaGetErrorName(result));
          return 77;
        }
        bench::harness run(argc, argv, "gpu_rows");
        const int status = p.run(run);
#ifdef MILLRACE_FAKE_CUDA
        // Such as memory that was freed while a kernel uses it. The part `waits` provokes a wait.
        for (const std::string& violation : fake_cuda::violations()) {
          std::printf("%s\n", violation.c_str());
          if (name != "waits") return 1;
        }
#endif
        return status;
      });
  std::fprintf(stderr, "usage: gpu_rows --only PART [--quick]; parts:");
  for (const gpu_rows::part& p : gpu_rows::parts) std::fprintf(stderr, " %s", p.name);
  std::fprintf(stderr, "\n");
  return 2;
}
