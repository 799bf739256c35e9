// The network of network.hpp as CUDA kernels: same layers, weights and optimizer, so that losses agree except for
// rounding.
//
//   gpu_network net({.side = 32, .classes = 10, .max_rows = 96});
//   net.set_weights(network({.side = 32, .classes = 10, .seed = 1}).weights().data());
//   net.backward(pixels, labels, stream);  net.update(1e-3, stream);     // all of these return at once
//   loss.add(net.losses(), {.stream = stream});  top.add(net.logits(), labels, {.stream = stream});
//   net.restart_totals(stream);  net.evaluate(...);  net.read_totals(stream);      // the last one waits
//
// Pixels [B, side, side, 3] u8 and labels [B] i32 in GPU memory, B up to max_rows. losses() and logits() are those of
// the last call, [B] and [B, classes], valid until the next call. An invalid label makes its loss NaN. No sum depends
// on the order of threads. `on_host`: see cuda_for_each.cuh. One thread computes one result: the code is written for
// readability, not for speed.
// Errors: errors of CUDA end the program with a message.
// Threads: one at a time.
#pragma once

#include <millrace/device/view.hpp>

struct gpu_network_options {
  std::size_t side = 32;   ///< of the input, in pixels; a multiple of 8
  std::size_t classes = 10;
  std::size_t max_rows = 96;
  double weight_decay = 1e-2;
  bool on_host = false;
};

/// The totals of all passes since restart_totals().
struct gpu_network_totals {
  double loss_sum = 0;
  std::uint64_t correct = 0, samples = 0;
};

class gpu_network {
 public:
  using pixels_view = millrace::tensor_view<const std::uint8_t, 4>;
  using labels_view = millrace::tensor_view<const std::int32_t, 1>;

  explicit gpu_network(gpu_network_options options);
  gpu_network(const gpu_network&) = delete;
  gpu_network& operator=(const gpu_network&) = delete;
  ~gpu_network();

  /// Weights and biases together, in the order of network::weights().
  std::size_t weight_count() const { return weight_count_; }
  void set_weights(const float* from);
  /// Sets the result of read_state(), 3 * weight_count() values, and the number of updates.
  void set_state(const float* from, std::uint64_t updates);
  /// Waits for the stream, and reads 3 * weight_count() values: weights, first and second moments.
  void read_state(float* to, millrace::stream_view stream) const;
  std::uint64_t updates() const { return updates_; }

  /// Forward and backward pass; accumulates gradients until the next update().
  void backward(pixels_view pixels, labels_view labels, millrace::stream_view stream);
  void update(double rate, millrace::stream_view stream);
  void evaluate(pixels_view pixels, labels_view labels, millrace::stream_view stream);

  millrace::tensor_view<const float, 1> losses() const;
  millrace::tensor_view<const float, 2> logits() const;
  void restart_totals(millrace::stream_view stream);
  gpu_network_totals read_totals(millrace::stream_view stream) const;

 private:
  static constexpr std::size_t blocks = 3;

  /// A 3x3 convolution with ReLU and 2x2 maximum pooling.
  struct block {
    std::size_t side, inputs, outputs, weights_at, bias_at;
    float* active;        // [rows, side, side, outputs], after the ReLU
    float* active_grad;   // likewise
    float* input_grad;    // [rows, side, side, inputs]; none for the first block
  };

  void forward(pixels_view pixels, labels_view labels, millrace::stream_view stream);

  const gpu_network_options o_;
  block blocks_[blocks];
  std::size_t features_ = 0, dense_at_ = 0, dense_bias_at_ = 0, weight_count_ = 0;
  std::size_t rows_ = 0;              // of the last call
  std::size_t waiting_samples_ = 0;   // since the last update
  std::uint64_t updates_ = 0;
  float* state_ = nullptr;   // weights, first moments, second moments
  float* gradient_ = nullptr;
  float* inputs_[blocks + 1];        // of each block, [rows, side, side, inputs]; last: of the dense layer
  float* features_grad_ = nullptr;   // [rows, features]
  float* logits_ = nullptr;          // [rows, classes]
  float* errors_ = nullptr;          // [rows, classes]: softmax less target
  float* losses_ = nullptr;          // [rows]
  std::uint8_t* right_ = nullptr;    // [rows]: 1 if the most probable class is the label
  gpu_network_totals* totals_ = nullptr;
};
