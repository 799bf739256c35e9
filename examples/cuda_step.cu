// The kernels of cuda_step.hpp. They use nothing of Millrace except tensor views.
//
// Each kernel is a struct (cuda_for_each.cuh). Each thread computes one result, and adds in a fixed order.
#include "cuda_for_each.cuh"
#include "cuda_step.hpp"

#include <cmath>
#include <vector>

namespace {

struct sizes {
  std::size_t rows, pixels, hidden, classes;
};

__host__ __device__ inline float number_of(std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F - 0.5F; }

/// One thread for each row and hidden unit.
struct forward_hidden {
  sizes n;
  const std::uint8_t* pixels;
  const float* first;
  float* active;

  __host__ __device__ void operator()(std::size_t i) const {
    const std::size_t row = i / n.hidden, unit = i % n.hidden;
    float sum = first[n.pixels * n.hidden + unit];
    for (std::size_t p = 0; p < n.pixels; ++p)
      sum += number_of(pixels[row * n.pixels + p]) * first[p * n.hidden + unit];
    active[i] = sum > 0 ? sum : 0;
  }
};

/// One thread for each row: logits, softmax, loss.
struct forward_classes {
  sizes n;
  const float* active;
  const float* second;
  const std::int32_t* labels;
  float* errors;
  float* losses;

  __host__ __device__ void operator()(std::size_t row) const {
    float* const out = errors + row * n.classes;
    float highest = -INFINITY, sum = 0;
    for (std::size_t c = 0; c < n.classes; ++c) {
      float logit = second[n.hidden * n.classes + c];
      for (std::size_t h = 0; h < n.hidden; ++h) logit += active[row * n.hidden + h] * second[h * n.classes + c];
      out[c] = logit;
      highest = logit > highest ? logit : highest;
    }
    const auto label = static_cast<std::size_t>(labels[row]);
    const float own = out[label];
    for (std::size_t c = 0; c < n.classes; ++c) sum += out[c] = std::exp(out[c] - highest);
    losses[row] = std::log(sum) - (own - highest);
    for (std::size_t c = 0; c < n.classes; ++c) out[c] = out[c] / sum - (c == label ? 1.0F : 0.0F);
  }
};

/// One thread for each row and hidden unit.
struct backward_hidden {
  sizes n;
  const float* active;
  const float* second;
  const float* errors;
  float* back;

  __host__ __device__ void operator()(std::size_t i) const {
    const std::size_t row = i / n.hidden, unit = i % n.hidden;
    float sum = 0;
    for (std::size_t c = 0; c < n.classes; ++c) sum += errors[row * n.classes + c] * second[unit * n.classes + c];
    back[i] = active[i] > 0 ? sum : 0;
  }
};

/// One thread for each weight of the first layer.
struct update_first {
  sizes n;
  const std::uint8_t* pixels;
  const float* back;
  float* first;
  float rate;

  __host__ __device__ void operator()(std::size_t i) const {
    const std::size_t p = i / n.hidden, unit = i % n.hidden;
    float sum = 0;
    for (std::size_t row = 0; row < n.rows; ++row)
      sum += back[row * n.hidden + unit] * (p == n.pixels ? 1.0F : number_of(pixels[row * n.pixels + p]));
    first[i] -= rate / static_cast<float>(n.rows) * sum;
  }
};

/// One thread for each weight of the second layer.
struct update_second {
  sizes n;
  const float* active;
  const float* errors;
  float* second;
  float rate;

  __host__ __device__ void operator()(std::size_t i) const {
    const std::size_t unit = i / n.classes, c = i % n.classes;
    float sum = 0;
    for (std::size_t row = 0; row < n.rows; ++row)
      sum += errors[row * n.classes + c] * (unit == n.hidden ? 1.0F : active[row * n.hidden + unit]);
    second[i] -= rate / static_cast<float>(n.rows) * sum;
  }
};

/// He initialization, from a small generator with the same results on every platform.
void fill_weights(float* to, std::size_t inputs, std::size_t outputs, bool on_host) {
  std::vector<float> values((inputs + 1) * outputs);
  const float reach = std::sqrt(6.0F / static_cast<float>(inputs));
  std::uint64_t state = inputs * 0x9e3779b97f4a7c15U + outputs;
  for (std::size_t i = 0; i < inputs * outputs; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    values[i] = reach * (static_cast<float>(state >> 40) / 8388608.0F - 1);
  }
  copy_and_wait(to, values.data(), values.size(), on_host);
}

}   // namespace

bool gpu_is_there(const char*& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  why = status == cudaSuccess ? "no device" : cudaGetErrorString(status);
  return status == cudaSuccess && count > 0;
}

two_layers::two_layers(two_layers_options options) : o_(options) {
  if (!o_.on_host) check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  pixels_ = make<std::uint8_t>(o_.rows * o_.pixels, o_.on_host);
  labels_ = make<std::int32_t>(o_.rows, o_.on_host);
  first_ = make<float>((o_.pixels + 1) * o_.hidden, o_.on_host);
  second_ = make<float>((o_.hidden + 1) * o_.classes, o_.on_host);
  active_ = make<float>(o_.rows * o_.hidden, o_.on_host);
  errors_ = make<float>(o_.rows * o_.classes, o_.on_host);
  back_ = make<float>(o_.rows * o_.hidden, o_.on_host);
  losses_ = make<float>(o_.rows, o_.on_host);
  fill_weights(first_, o_.pixels, o_.hidden, o_.on_host);
  fill_weights(second_, o_.hidden, o_.classes, o_.on_host);
}

two_layers::~two_layers() {
  for (void* memory : {static_cast<void*>(pixels_), static_cast<void*>(labels_), static_cast<void*>(first_),
                       static_cast<void*>(second_), static_cast<void*>(active_), static_cast<void*>(errors_),
                       static_cast<void*>(back_), static_cast<void*>(losses_)})
    release(memory, o_.on_host);
  if (stream_) cudaStreamDestroy(stream_);
}

void two_layers::upload(const std::uint8_t* pixels, const std::int32_t* labels) {
  copy_and_wait(pixels_, pixels, o_.rows * o_.pixels, o_.on_host);
  copy_and_wait(labels_, labels, o_.rows, o_.on_host);
}

void two_layers::step(pixels_view pixels, labels_view labels, millrace::stream_view stream) {
  const sizes n{o_.rows, o_.pixels, o_.hidden, o_.classes};
  const launch_options at{stream, o_.on_host};
  for_each(n.rows * n.hidden, forward_hidden{n, pixels.data, first_, active_}, at);
  for_each(n.rows, forward_classes{n, active_, second_, labels.data, errors_, losses_}, at);
  for_each(n.rows * n.hidden, backward_hidden{n, active_, second_, errors_, back_}, at);
  for_each((n.pixels + 1) * n.hidden, update_first{n, pixels.data, back_, first_, o_.rate}, at);
  for_each((n.hidden + 1) * n.classes, update_second{n, active_, errors_, second_, o_.rate}, at);
}

float two_layers::read_loss() {
  if (!o_.on_host) check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  std::vector<float> losses(o_.rows);
  copy_and_wait(losses.data(), losses_, o_.rows, o_.on_host);
  float sum = 0;
  for (const float loss : losses) sum += loss;
  return sum / static_cast<float>(o_.rows);
}
