// See gpu_parts.hpp. The fake runtime's build compiles this file as C++, with kernels on the host.
#ifndef __CUDACC__
#include "../../kernels_on_host.hpp"
#endif
#include "gpu_parts.hpp"

#include <millrace/device/mix_rows.cuh>
#include <millrace/device/normalize.cuh>
#include <millrace/train/metrics.cuh>

#include <chrono>
#include <thread>

namespace mr = millrace;

namespace {

using mr::detail::check_cuda;

struct spin_body {
  static constexpr unsigned threads = 32;

  long long nanoseconds;

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    team.once([&] {
#ifdef __CUDA_ARCH__
      long long start = 0, now = 0;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
      do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      while (now - start < nanoseconds);
#else
      std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
#endif
    });
  }
};

#ifdef __CUDACC__
__global__ void write_to_nowhere_kernel(int* address) { *address = 1; }
#endif

/// Device memory with random bytes, which are finite numbers as f32, f16 and bf16.
class random_memory {
 public:
  explicit random_memory(std::size_t bytes) {
    std::vector<std::uint8_t> values(bytes);
    std::uint64_t state = 1;
    for (std::uint8_t& v : values) {
      state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
      v = static_cast<std::uint8_t>(state >> 58);   // below 64
    }
    check_cuda(cudaMalloc(&memory_, bytes), "cudaMalloc");
    check_cuda(cudaMemcpy(memory_, values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  random_memory(const random_memory&) = delete;
  random_memory& operator=(const random_memory&) = delete;
  ~random_memory() { cudaFree(memory_); }

  template <class T, std::size_t N>
  mr::tensor_view<T, N> view(const std::array<std::size_t, N>& shape) const {
    return {.data = static_cast<T*>(memory_), .shape = shape, .memory = mr::memory_kind::device};
  }

 private:
  void* memory_ = nullptr;
};
using shared_memory = std::shared_ptr<random_memory>;

shared_memory make_memory(std::size_t bytes) { return std::make_shared<random_memory>(bytes); }

template <class T>
constexpr const char* name_of = std::is_same_v<T, std::uint8_t> ? "u8"
                                : std::is_same_v<T, float>      ? "f32"
                                : std::is_same_v<T, mr::f16>    ? "f16"
                                                                : "bf16";

template <class T>
void add_normalize(std::vector<timed_kernel>& all, std::size_t images, std::size_t side) {
  const std::size_t count = images * side * side * 3;
  const shared_memory pixels = make_memory(count), numbers = make_memory(count * sizeof(T));
  for (const bool planar : {false, true})
    all.push_back(
        {.name = "normalize_" + std::string(name_of<T>) + (planar ? "_nchw_" : "_nhwc_") + std::to_string(side),
         .bytes = static_cast<double>(count * (1 + sizeof(T))),
         .allowed_ratio = side % 16 == 0 ? 1.5 : 0,
         .launch = [=](mr::stream_view s) {
           constexpr std::size_t channels = 3;
           const std::array nhwc{images, side, side, channels}, nchw{images, channels, side, side};
           mr::normalize(pixels->view<const std::uint8_t>(nhwc), numbers->view<T>(planar ? nchw : nhwc),
                         {.layout = planar ? mr::image_layout::nchw : mr::image_layout::nhwc}, s);
         }});
}

template <class T>
void add_mix_rows(std::vector<timed_kernel>& all, std::size_t images, std::size_t side) {
  const shared_memory rows = make_memory(images * side * side * 3 * sizeof(T));
  for (const bool boxes : {false, true}) {
    std::vector<mr::row_mix> mixes(images);
    for (std::size_t i = 0; i < images; ++i) {
      mixes[i].partner = static_cast<std::int32_t>(i ^ 1);
      const auto quarter = static_cast<std::uint16_t>(side / 4), end = static_cast<std::uint16_t>(side - quarter);
      if (boxes) mixes[i].left = mixes[i].top = quarter, mixes[i].right = mixes[i].bottom = end;
      else mixes[i].weight = 45'874;
    }
    const shared_memory there = make_memory(images * sizeof(mr::row_mix));
    const auto mixes_there = there->view<mr::row_mix, 1>({images});
    check_cuda(cudaMemcpy(mixes_there.data, mixes.data(), images * sizeof(mr::row_mix), cudaMemcpyHostToDevice),
               "cudaMemcpy");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    all.push_back(
        {.name = "mix_rows_" + std::string(name_of<T>) + (boxes ? "_cutmix" : "_mixup"),
         .bytes = 2 * static_cast<double>(images * side * side * 3 * sizeof(T)),
         .allowed_ratio = 1.5,
         .launch = [=](mr::stream_view s) {
           mr::mix_rows(rows->view<T, 4>({images, side, side, 3}), there->view<const mr::row_mix, 1>({images}), s);
         }});
  }
}

void add_dense_labels(std::vector<timed_kernel>& all, std::size_t rows, std::size_t classes) {
  const shared_memory labels = make_memory(rows * sizeof(std::int64_t)), lambda = make_memory(rows * sizeof(float)),
                      dense = make_memory(rows * classes * sizeof(float));
  all.push_back({.name = "dense_labels_" + std::to_string(rows) + "x" + std::to_string(classes),
                 .bytes = static_cast<double>(rows * classes * sizeof(float)),
                 .launch = [=](mr::stream_view s) {
                   const auto both = labels->view<const std::int64_t, 1>({rows});
                   mr::dense_labels(mr::mixed_labels<std::int64_t>{.label_a = both,
                                                                   .label_b = both,
                                                                   .lambda = lambda->view<const float, 1>({rows})},
                                    dense->view<float, 2>({rows, classes}), {.smoothing = 0.1}, s);
                 }});
}

void add_metrics(std::vector<timed_kernel>& all, bool small_data) {
  const auto sums = make_sums();
  const std::size_t mean = sums->add_metric(), ranks = sums->add_metric();
  for (const std::size_t count : {512, 131'072}) {
    const shared_memory values = make_memory(count * sizeof(float));
    all.push_back({.name = "sum_values_" + std::to_string(count),
                   .bytes = static_cast<double>(count * sizeof(float)),
                   .launch = [=](mr::stream_view s) {
                     sums->add_values(mean,
                                      {.data = values->view<float, 1>({count}).data, .count = count, .stream = s});
                   }});
  }
  const shared_memory losses = make_memory(512 * sizeof(float));
  std::vector<std::size_t> means(5);
  for (std::size_t& number : means) number = sums->add_metric();
  all.push_back({.name = "add_together_5x512",
                 .bytes = 5.0 * 512 * sizeof(float),
                 .launch = [=](mr::stream_view s) {
                   sums->begin_group();
                   for (const std::size_t number : means)
                     sums->add_values(number,
                                      {.data = losses->view<float, 1>({512}).data, .count = 512, .stream = s});
                   sums->end_group();
                 }});
  for (const std::size_t classes : {10, 1'000, 128'000}) {
    const std::size_t rows = small_data ? 4 : classes > 10'000 ? 256 : 8'192;
    const shared_memory logits = make_memory(rows * classes * sizeof(float)),
                        labels = make_memory(rows * sizeof(std::int64_t));
    check_cuda(cudaMemset(labels->view<std::int64_t, 1>({rows}).data, 0, rows * sizeof(std::int64_t)), "cudaMemset");
    all.push_back({.name = "rank_rows_" + std::to_string(rows) + "x" + std::to_string(classes),
                   .bytes = static_cast<double>(rows * classes * sizeof(float)),
                   .allowed_ratio = 0,
                   .launch = [=](mr::stream_view s) {
                     sums->add_rows(ranks, {.logits = logits->view<float, 2>({rows, classes}).data,
                                            .labels = labels->view<std::int64_t, 1>({rows}).data,
                                            .wide_labels = true,
                                            .rows = rows,
                                            .classes = classes,
                                            .stream = s});
                   }});
  }
}

}  // namespace

void spin(double milliseconds, mr::stream_view stream) {
  mr::detail::launch(spin_body{static_cast<long long>(milliseconds * 1e6)}, {.blocks = 1, .stream = stream});
}

void write_to_nowhere([[maybe_unused]] mr::stream_view stream) {
#ifdef __CUDACC__
  write_to_nowhere_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(16));
  check_cuda(cudaGetLastError(), "write_to_nowhere");
#else
  fake_cuda::break_device(cudaErrorIllegalAddress);
#endif
}

std::shared_ptr<mr::device_sums> make_sums() { return mr::cuda_metric_sums(); }

void mix_pictures(const mr::tensor_view<std::uint8_t, 4>& pixels, const mr::tensor_view<const mr::row_mix, 1>& mixes,
                  mr::stream_view stream) {
  mr::mix_rows(pixels, mixes, stream);
}

std::vector<timed_kernel> timed_kernels(bool small_data) {
  const std::size_t images = small_data ? 2 : 512, side = small_data ? 16 : 224;
  std::vector<timed_kernel> all;
  add_normalize<float>(all, images, side);
  add_normalize<mr::f16>(all, images, side);
  add_normalize<mr::bf16>(all, images, side);
  add_normalize<mr::bf16>(all, images, side + 1);
  add_mix_rows<std::uint8_t>(all, 2 * images, side);
  add_mix_rows<mr::f16>(all, images, side);
  add_dense_labels(all, small_data ? 4 : 8'192, 1'000);
  add_metrics(all, small_data);
  return all;
}
