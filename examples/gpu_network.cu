// The kernels of gpu_network.hpp, one struct each (cuda_for_each.cuh), and the order of their launches.
//
// Tensors are [rows, y, x, channel], weights [3, 3, inputs, outputs]. Each sum has the order of its loops, on every
// machine.
#include "cuda_for_each.cuh"
#include "gpu_network.hpp"

#include <cmath>

namespace {

struct map_sizes {
  std::size_t rows, side, inputs, outputs;

  __host__ __device__ std::size_t in(std::size_t row, std::size_t y, std::size_t x, std::size_t c) const {
    return ((row * side + y) * side + x) * inputs + c;
  }
  __host__ __device__ std::size_t out(std::size_t row, std::size_t y, std::size_t x, std::size_t c) const {
    return ((row * side + y) * side + x) * outputs + c;
  }
  __host__ __device__ std::size_t weight(std::size_t ky, std::size_t kx, std::size_t from, std::size_t to) const {
    return ((ky * 3 + kx) * inputs + from) * outputs + to;
  }
};

/// The coordinates of an index in a tensor of that side and number of channels.
struct map_pixel {
  std::size_t row, y, x, c;

  __host__ __device__ map_pixel(std::size_t i, std::size_t side, std::size_t channels)
      : row(i / channels / side / side), y(i / channels / side % side), x(i / channels % side), c(i % channels) {}
};

/// Centers pixels around zero.
struct take_pixels {
  const std::uint8_t* pixels;
  float* to;
  __host__ __device__ void operator()(std::size_t i) const { to[i] = static_cast<float>(pixels[i]) * (4.0F / 255) - 2; }
};

/// One thread for each output, ReLU included. Coordinates wrap below zero, so that one comparison checks both edges.
struct convolve {
  map_sizes n;
  const float* in;
  const float* weights;
  const float* bias;
  float* out;

  __host__ __device__ void operator()(std::size_t i) const {
    const map_pixel at(i, n.side, n.outputs);
    float sum = bias[at.c];
    for (std::size_t ky = 0; ky < 3; ++ky)
      for (std::size_t kx = 0; kx < 3; ++kx) {
        const std::size_t y = at.y + ky - 1, x = at.x + kx - 1;
        if (y >= n.side || x >= n.side) continue;
        for (std::size_t c = 0; c < n.inputs; ++c)
          sum += in[n.in(at.row, y, x, c)] * weights[n.weight(ky, kx, c, at.c)];
      }
    out[i] = sum > 0 ? sum : 0;
  }
};

/// The index of the largest of four elements in the tensor [rows, side, side, channels]; of equal ones the first.
__host__ __device__ inline std::size_t largest_of_four(const map_sizes& n, const float* active,
                                                       const map_pixel& pooled) {
  const std::size_t corner = n.out(pooled.row, 2 * pooled.y, 2 * pooled.x, pooled.c);
  const std::size_t others[] = {corner + n.outputs, corner + n.side * n.outputs, corner + (n.side + 1) * n.outputs};
  std::size_t best = corner;
  for (const std::size_t other : others)
    if (active[other] > active[best]) best = other;
  return best;
}

/// One thread for each pooled value.
struct pool {
  map_sizes n;
  const float* active;
  float* to;
  __host__ __device__ void operator()(std::size_t i) const {
    to[i] = active[largest_of_four(n, active, map_pixel(i, n.side / 2, n.outputs))];
  }
};

/// One thread for each row: dense layer, softmax, loss.
struct classify {
  std::size_t features, classes;
  const float* values;
  const float* weights;
  const float* bias;
  const std::int32_t* labels;
  float* logits;
  float* errors;
  float* losses;
  std::uint8_t* right;

  __host__ __device__ void operator()(std::size_t row) const {
    float* const out = logits + row * classes;
    float* const error = errors + row * classes;
    std::size_t best = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      float sum = bias[c];
      for (std::size_t f = 0; f < features; ++f) sum += values[row * features + f] * weights[f * classes + c];
      out[c] = sum;
      if (sum > out[best]) best = c;
    }
    float sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += error[c] = std::exp(out[c] - out[best]);
    const std::int32_t label = labels[row];
    const bool is_class = label >= 0 && static_cast<std::size_t>(label) < classes;
    losses[row] = is_class ? std::log(sum) - (out[label] - out[best]) : NAN;
    right[row] = is_class && best == static_cast<std::size_t>(label);
    for (std::size_t c = 0; c < classes; ++c)
      error[c] = error[c] / sum - (is_class && c == static_cast<std::size_t>(label) ? 1.0F : 0.0F);
  }
};

/// A single thread, so that the order of the sum is fixed.
struct add_to_totals {
  std::size_t rows;
  const float* losses;
  const std::uint8_t* right;
  gpu_network_totals* totals;
  __host__ __device__ void operator()(std::size_t) const {
    for (std::size_t row = 0; row < rows; ++row) {
      totals->loss_sum += static_cast<double>(losses[row]);
      totals->correct += right[row];
    }
    totals->samples += rows;
  }
};

/// One thread for each weight of the dense layer, then one for each bias.
struct dense_gradient {
  std::size_t rows, features, classes;
  const float* values;
  const float* errors;
  float* gradient;
  __host__ __device__ void operator()(std::size_t i) const {
    const std::size_t f = i / classes, c = i % classes;
    float sum = 0;
    for (std::size_t row = 0; row < rows; ++row)
      sum += errors[row * classes + c] * (f == features ? 1.0F : values[row * features + f]);
    gradient[i] += sum;
  }
};

/// One thread for each feature of each row.
struct dense_input_gradient {
  std::size_t features, classes;
  const float* weights;
  const float* errors;
  float* to;
  __host__ __device__ void operator()(std::size_t i) const {
    const std::size_t row = i / features, f = i % features;
    float sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += weights[f * classes + c] * errors[row * classes + c];
    to[i] = sum;
  }
};

/// One thread for each pooled value: backward through maximum and ReLU, to its four inputs.
struct unpool {
  map_sizes n;
  const float* active;
  const float* pooled_grad;
  float* grad;
  __host__ __device__ void operator()(std::size_t i) const {
    const map_pixel at(i, n.side / 2, n.outputs);
    const std::size_t best = largest_of_four(n, active, at);
    for (std::size_t four = 0; four < 4; ++four) {
      const std::size_t to = n.out(at.row, 2 * at.y + four / 2, 2 * at.x + four % 2, at.c);
      grad[to] = to == best && active[to] > 0 ? pooled_grad[i] : 0;
    }
  }
};

/// One thread for each weight of a convolution, then one for each bias.
struct convolution_gradient {
  map_sizes n;
  const float* in;
  const float* grad;
  float* gradient;
  __host__ __device__ void operator()(std::size_t i) const {
    const std::size_t to = i % n.outputs, from = i / n.outputs % n.inputs, tap = i / n.outputs / n.inputs;
    const bool is_bias = i >= 9 * n.inputs * n.outputs;
    float sum = 0;
    for (std::size_t row = 0; row < n.rows; ++row)
      for (std::size_t y = 0; y < n.side; ++y)
        for (std::size_t x = 0; x < n.side; ++x) {
          const std::size_t in_y = y + tap / 3 - 1, in_x = x + tap % 3 - 1;
          if (is_bias) sum += grad[n.out(row, y, x, to)];
          else if (in_y < n.side && in_x < n.side) sum += in[n.in(row, in_y, in_x, from)] * grad[n.out(row, y, x, to)];
        }
    gradient[i] += sum;
  }
};

/// One thread for each input of a convolution.
struct convolution_input_gradient {
  map_sizes n;
  const float* weights;
  const float* grad;
  float* to;
  __host__ __device__ void operator()(std::size_t i) const {
    const map_pixel at(i, n.side, n.inputs);
    float sum = 0;
    for (std::size_t ky = 0; ky < 3; ++ky)
      for (std::size_t kx = 0; kx < 3; ++kx) {
        const std::size_t y = at.y + 1 - ky, x = at.x + 1 - kx;
        if (y >= n.side || x >= n.side) continue;
        for (std::size_t c = 0; c < n.outputs; ++c)
          sum += grad[n.out(at.row, y, x, c)] * weights[n.weight(ky, kx, at.c, c)];
      }
    to[i] = sum;
  }
};

/// One thread for each weight; resets the gradient.
struct adam {
  float scale, rate, unbias_2, decay;
  float* gradient;
  float* weights;
  float* moment_1;
  float* moment_2;
  __host__ __device__ void operator()(std::size_t i) const {
    const float g = gradient[i] * scale;
    gradient[i] = 0;
    moment_1[i] += (g - moment_1[i]) * static_cast<float>(1 - 0.9);
    moment_2[i] += (g * g - moment_2[i]) * static_cast<float>(1 - 0.999);
    weights[i] = weights[i] * decay - rate * moment_1[i] / (std::sqrt(moment_2[i] * unbias_2) + 1e-8F);
  }
};

}   // namespace

gpu_network::gpu_network(gpu_network_options options) : o_(options) {
  std::size_t side = o_.side, inputs = 3, at = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t outputs = std::size_t{16} << i, maps = o_.max_rows * side * side;
    inputs_[i] = make<float>(maps * inputs, o_.on_host);
    blocks_[i] = {.side = side,
                  .inputs = inputs,
                  .outputs = outputs,
                  .weights_at = at,
                  .bias_at = at + 9 * inputs * outputs,
                  .active = make<float>(maps * outputs, o_.on_host),
                  .active_grad = make<float>(maps * outputs, o_.on_host),
                  .input_grad = i == 0 ? nullptr : make<float>(maps * inputs, o_.on_host)};
    at = blocks_[i].bias_at + outputs;
    inputs = outputs;
    side /= 2;
  }
  features_ = side * side * inputs;
  inputs_[blocks] = make<float>(o_.max_rows * features_, o_.on_host);
  dense_at_ = at;
  dense_bias_at_ = at + features_ * o_.classes;
  weight_count_ = dense_bias_at_ + o_.classes;
  state_ = make<float>(3 * weight_count_, o_.on_host);
  gradient_ = make<float>(weight_count_, o_.on_host);
  features_grad_ = make<float>(o_.max_rows * features_, o_.on_host);
  logits_ = make<float>(o_.max_rows * o_.classes, o_.on_host);
  errors_ = make<float>(o_.max_rows * o_.classes, o_.on_host);
  losses_ = make<float>(o_.max_rows, o_.on_host);
  right_ = make<std::uint8_t>(o_.max_rows, o_.on_host);
  totals_ = make<gpu_network_totals>(1, o_.on_host);
  // Waits for the zeros, before any stream uses them.
  if (!o_.on_host) check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

gpu_network::~gpu_network() {
  for (const block& b : blocks_)
    for (float* memory : {b.active, b.active_grad, b.input_grad}) release(memory, o_.on_host);
  for (float* memory : inputs_) release(memory, o_.on_host);
  for (float* memory : {state_, gradient_, features_grad_, logits_, errors_, losses_}) release(memory, o_.on_host);
  release(right_, o_.on_host);
  release(totals_, o_.on_host);
}

void gpu_network::set_weights(const float* from) { copy_and_wait(state_, from, weight_count_, o_.on_host); }

void gpu_network::set_state(const float* from, std::uint64_t updates) {
  copy_and_wait(state_, from, 3 * weight_count_, o_.on_host);
  updates_ = updates;
}

void gpu_network::read_state(float* to, millrace::stream_view stream) const {
  if (!o_.on_host) check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  copy_and_wait(to, state_, 3 * weight_count_, o_.on_host);
}

void gpu_network::forward(pixels_view pixels, labels_view labels, millrace::stream_view stream) {
  const launch_options at{stream, o_.on_host};
  rows_ = labels.shape[0];
  if (rows_ > o_.max_rows || pixels.shape[0] != rows_ || pixels.size() != rows_ * o_.side * o_.side * 3) {
    std::fprintf(stderr, "the network got %zu labels and %zu numbers of pixels, expected at most %zu of side %zu\n",
                 rows_, pixels.size(), o_.max_rows, o_.side);
    std::exit(1);
  }
  for_each(pixels.size(), take_pixels{pixels.data, inputs_[0]}, at);
  for (std::size_t i = 0; i < blocks; ++i) {
    const block& b = blocks_[i];
    const map_sizes n{rows_, b.side, b.inputs, b.outputs};
    const std::size_t outputs = rows_ * b.side * b.side * b.outputs;
    for_each(outputs, convolve{n, inputs_[i], state_ + b.weights_at, state_ + b.bias_at, b.active}, at);
    for_each(outputs / 4, pool{n, b.active, inputs_[i + 1]}, at);
  }
  for_each(rows_,
           classify{features_, o_.classes, inputs_[blocks], state_ + dense_at_, state_ + dense_bias_at_, labels.data,
                    logits_, errors_, losses_, right_},
           at);
}

void gpu_network::evaluate(pixels_view pixels, labels_view labels, millrace::stream_view stream) {
  forward(pixels, labels, stream);
  for_each(1, add_to_totals{rows_, losses_, right_, totals_}, {stream, o_.on_host});
}

void gpu_network::backward(pixels_view pixels, labels_view labels, millrace::stream_view stream) {
  const launch_options at{stream, o_.on_host};
  forward(pixels, labels, stream);
  for_each((features_ + 1) * o_.classes,
           dense_gradient{rows_, features_, o_.classes, inputs_[blocks], errors_, gradient_ + dense_at_}, at);
  for_each(rows_ * features_, dense_input_gradient{features_, o_.classes, state_ + dense_at_, errors_, features_grad_},
           at);
  const float* pooled_grad = features_grad_;
  for (std::size_t i = blocks; i-- > 0;) {
    const block& b = blocks_[i];
    const map_sizes n{rows_, b.side, b.inputs, b.outputs};
    const std::size_t maps = rows_ * b.side * b.side;
    for_each(maps * b.outputs / 4, unpool{n, b.active, pooled_grad, b.active_grad}, at);
    for_each((9 * b.inputs + 1) * b.outputs,
             convolution_gradient{n, inputs_[i], b.active_grad, gradient_ + b.weights_at}, at);
    if (i > 0)
      for_each(maps * b.inputs, convolution_input_gradient{n, state_ + b.weights_at, b.active_grad, b.input_grad}, at);
    pooled_grad = b.input_grad;
  }
  waiting_samples_ += rows_;
}

void gpu_network::update(double rate, millrace::stream_view stream) {
  if (waiting_samples_ == 0) return;
  ++updates_;
  const double bias_1 = 1 - std::pow(0.9, static_cast<double>(updates_));
  const double bias_2 = 1 - std::pow(0.999, static_cast<double>(updates_));
  for_each(weight_count_,
           adam{static_cast<float>(1 / static_cast<double>(waiting_samples_)), static_cast<float>(rate / bias_1),
                static_cast<float>(1 / bias_2), static_cast<float>(1 - rate * o_.weight_decay), gradient_, state_,
                state_ + weight_count_, state_ + 2 * weight_count_},
           {stream, o_.on_host});
  waiting_samples_ = 0;
}

millrace::tensor_view<const float, 1> gpu_network::losses() const {
  return {.data = losses_,
          .shape = {rows_},
          .memory = o_.on_host ? millrace::memory_kind::host : millrace::memory_kind::device,
          .name = "losses"};
}

millrace::tensor_view<const float, 2> gpu_network::logits() const {
  return {.data = logits_,
          .shape = {rows_, o_.classes},
          .memory = o_.on_host ? millrace::memory_kind::host : millrace::memory_kind::device,
          .name = "logits"};
}

void gpu_network::restart_totals(millrace::stream_view stream) {
  if (o_.on_host) *totals_ = {};
  else check(cudaMemsetAsync(totals_, 0, sizeof *totals_, stream), "cudaMemsetAsync");
}

gpu_network_totals gpu_network::read_totals(millrace::stream_view stream) const {
  if (!o_.on_host) check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  gpu_network_totals totals;
  copy_and_wait(&totals, totals_, 1, o_.on_host);
  return totals;
}
