// A small convolutional network in plain C++, so that the example programs can train a real model on any machine.
//
//   network net({.side = 32, .classes = 10, .seed = 1});
//   auto outcome = net.step(pixels, labels, 1e-3);        // [B, side, side, 3] u8 or f32 in 0..1; [B] i32
//   outcome.mean_loss();  outcome.accuracy();  net.logits();  // [B, classes] f32 of the last call
//   net.backward(...); net.backward(...); net.update(rate);   // one update with the mean over both
//   net.save("model.bin");                             // and load(): weights and optimizer, to resume exactly
//
// Three blocks of 3x3 convolution, ReLU and 2x2 maximum pooling; then one dense layer, softmax and cross-entropy; Adam
// with decoupled weight decay (Kingma and Ba, ICLR 2015; Loshchilov and Hutter, ICLR 2019). A batch is divided into
// chunks of four samples, which run in parallel; their gradients are added in order. Therefore a seed leads to the same
// weights with any number of threads.
// Errors: setup_error for shapes and labels, io_error and data_error from save and load.
// Threads: one caller at a time; the work runs in the caller's oneTBB arena.
#pragma once

#include "adam.hpp"
#include "network_kernel.hpp"

#include <millrace/base/random.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

struct network_options {
  std::size_t side = 32;   ///< of the input, in pixels; a multiple of 8
  std::size_t classes = 10;
  std::uint64_t seed = 1;
  double weight_decay = 1e-2;
};

/// The result of a pass over a batch.
struct network_outcome {
  double loss_sum = 0;
  std::size_t correct = 0;
  std::size_t samples = 0;

  double mean_loss() const { return loss_sum / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
  void add(const network_outcome& o) {
    loss_sum += o.loss_sum;
    correct += o.correct;
    samples += o.samples;
  }
};

/// `Real` is float for training, double to check the gradients.
template <class Real>
class basic_network {
 public:
  using labels_view = millrace::tensor_view<const std::int32_t, 1>;
  template <class Pixel>
  using pixels_view = millrace::tensor_view<Pixel, 4>;   // const or not

  explicit basic_network(network_options options) : options_(options) {
    if (options.side == 0 || options.side % 8 != 0 || options.classes == 0)
      throw millrace::setup_error("the options of a network are wrong: got a side of " + std::to_string(options.side) +
                                      " pixels and " + std::to_string(options.classes) + " classes",
                                  "Use a side that is a multiple of 8, and at least one class");
    std::size_t side = options.side, inputs = 3, at = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
      auto& b = shape_[i];
      b = {.side = side, .inputs = inputs, .outputs = widths[i], .weights_at = at};
      b.bias_at = at + 9 * inputs * b.outputs;
      at = b.bias_at + b.outputs;
      inputs = b.outputs;
      side /= 2;
    }
    features_ = side * side * inputs;
    dense_at_ = at;
    dense_bias_at_ = at + features_ * options.classes;
    const std::size_t total = dense_bias_at_ + options.classes;
    learned_ = adam<Real>(total);
    millrace::rng rng({.seed = options.seed});
    for (const auto& b : shape_) fill(rng, b.weights_at, 9 * b.inputs * b.outputs, 9 * b.inputs);
    fill(rng, dense_at_, features_ * options.classes, features_);
  }

  /// For mixed rows: the second label of each row, and the weight of the first.
  struct mixed_labels {
    labels_view label_b{};
    millrace::tensor_view<const float, 1> lambda{};
  };

  /// Forward and backward pass; accumulates gradients until the next update().
  template <class Pixel>
  network_outcome backward(pixels_view<Pixel> pixels, labels_view labels, const mixed_labels& others = {}) {
    prepare_backward();
    const auto outcome = run(pixels, labels, true, others);
    for (std::size_t c = 0; c < chunks_of(outcome.samples); ++c)
      for (std::size_t i = 0; i < learned_.gradient.size(); ++i) learned_.gradient[i] += chunks_[c]->gradient[i];
    learned_.samples += outcome.samples;
    return outcome;
  }

  /// One step of the optimizer, with the mean gradient of all samples since the last step.
  void update(double rate) { learned_.update({.rate = rate, .weight_decay = options_.weight_decay}); }

  template <class Pixel>
  network_outcome step(pixels_view<Pixel> pixels, labels_view labels, double rate) {
    const auto outcome = backward(pixels, labels);
    update(rate);
    return outcome;
  }

  template <class Pixel>
  network_outcome evaluate(pixels_view<Pixel> pixels, labels_view labels) {
    return run(pixels, labels, false);
  }

  /// [B, classes] of the last call; valid until the next call.
  millrace::tensor_view<const Real, 2> logits() const {
    return {.data = logits_.data(), .shape = {logits_.size() / options_.classes, options_.classes}, .name = "logits"};
  }
  std::vector<Real>& weights() { return learned_.weights; }
  /// The sum over the samples since the last update().
  const std::vector<Real>& gradient() const { return learned_.gradient; }
  /// Replaces the gradient by a sum over this number of samples, which may include those of other processes.
  void set_gradient(std::span<const Real> sum, std::size_t samples) {
    std::copy(sum.begin(), sum.end(), learned_.gradient.begin());
    learned_.samples = samples;
  }

  /// Weights, optimizer and number of updates. load() restores the exact state and returns the note; if it throws, it
  /// changes nothing.
  void save(const std::string& path, std::string_view note = {}) const { learned_.save(path, file_head(), note); }
  std::string load(const std::string& path) { return learned_.load(path, file_head()); }
  std::uint64_t updates() const { return learned_.updates(); }
  std::vector<Real> state() const { return learned_.state(); }
  /// Sets weights, first and second moments (consecutive), and the number of updates.
  void set_state(const std::vector<Real>& state, std::uint64_t updates) { learned_.set_state(state, updates); }

 private:
  static constexpr std::size_t blocks = 3, chunk_samples = 4;
  static constexpr std::size_t widths[blocks] = {16, 32, 64};   // multiples of network_kernel::columns

  /// The position of a block in the weights: 3 x 3 x inputs rows of `outputs`, then the bias.
  struct block_shape {
    std::size_t side = 0, inputs = 0, outputs = 0, weights_at = 0, bias_at = 0;

    std::size_t padded_row() const { return (side + 2) * inputs; }   // elements in a row of the padded input
  };

  /// Memory of one chunk. Padding stays zero.
  struct workspace {
    std::vector<Real> input[blocks];         // [side + 2, side + 2, inputs]
    std::vector<Real> output[blocks];        // [side, side, outputs], after the ReLU
    std::vector<Real> output_grad[blocks];   // [side + 2, side + 2, outputs]
    std::vector<Real> features, features_grad;
    std::vector<Real> input_grad;   // [side, side, inputs] of the current block
    std::vector<Real> gradient;
    network_outcome outcome;
  };

  static std::size_t chunks_of(std::size_t samples) { return (samples + chunk_samples - 1) / chunk_samples; }

  /// He initialization (ICCV 2015): normally distributed, with variance 2 / fan_in, by the Box-Muller method.
  void fill(millrace::rng& rng, std::size_t at, std::size_t count, std::size_t fan_in) {
    const double deviation = std::sqrt(2.0 / static_cast<double>(fan_in));
    for (std::size_t i = 0; i < count; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
      const double angle = 2 * std::numbers::pi * rng.uniform();
      learned_.weights[at + i] = static_cast<Real>(deviation * radius * std::cos(angle));
    }
  }

  std::unique_ptr<workspace> new_workspace() const {
    auto w = std::make_unique<workspace>();
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto& b = shape_[i];
      w->input[i].assign((b.side + 2) * b.padded_row(), 0);
      w->output[i].assign(b.side * b.side * b.outputs, 0);
      w->output_grad[i].assign((b.side + 2) * (b.side + 2) * b.outputs, 0);
    }
    w->input_grad.assign(options_.side * options_.side * 32, 0);
    w->features.assign(features_, 0);
    w->features_grad.assign(features_, 0);
    w->gradient.assign(learned_.weights.size(), 0);
    return w;
  }

  /// Prepares the gradient of the inputs: a convolution with reversed taps, and with inputs and outputs exchanged.
  void prepare_backward() {
    for (std::size_t i = 1; i < blocks; ++i) {
      const auto& b = shape_[i];
      transposed_[i].resize(9 * b.inputs * b.outputs);
      for (std::size_t tap = 0; tap < 9; ++tap)
        for (std::size_t in = 0; in < b.inputs; ++in)
          for (std::size_t out = 0; out < b.outputs; ++out)
            transposed_[i][((8 - tap) * b.outputs + out) * b.inputs + in] =
                learned_.weights[b.weights_at + (tap * b.inputs + in) * b.outputs + out];
    }
  }

  template <class Pixel>
  network_outcome run(pixels_view<Pixel> pixels, labels_view labels, bool learn, const mixed_labels& others = {}) {
    const std::array<std::size_t, 4> expected{labels.shape[0], options_.side, options_.side, 3};
    if (pixels.shape != expected)
      throw millrace::setup_error(
          "the network got pixels " + millrace::to_string(pixels.shape) + ", expected " + millrace::to_string(expected),
          "Resize images to the side of the network, and pass pixels and labels of one batch");
    for (const labels_view& all : {labels, others.label_b})
      for (const std::int32_t label : all.span())
        if (label < 0 || static_cast<std::size_t>(label) >= options_.classes)
          throw millrace::setup_error("label " + std::to_string(label) + " is out of range: the network has " +
                                          std::to_string(options_.classes) + " classes",
                                      "Use labels below this number");
    const std::size_t samples = labels.shape[0], chunks = chunks_of(samples);
    while (chunks_.size() < chunks) chunks_.push_back(new_workspace());
    logits_.assign(samples * options_.classes, 0);
    tbb::parallel_for(std::size_t{0}, chunks, [&](std::size_t c) {
      workspace& w = *chunks_[c];
      w.outcome = {};
      if (learn) std::fill(w.gradient.begin(), w.gradient.end(), Real{0});
      for (std::size_t s = c * chunk_samples; s < std::min(samples, (c + 1) * chunk_samples); ++s) {
        copy_pixels(pixels[s], w.input[0]);
        forward(w, s);
        const bool mixed = others.label_b.data != nullptr;
        finish(w, s,
               {.a = static_cast<std::size_t>(labels[s]),
                .b = static_cast<std::size_t>(mixed ? others.label_b[s] : labels[s]),
                .lambda = static_cast<Real>(mixed ? others.lambda[s] : 1)},
               learn);
      }
    });
    network_outcome outcome;
    for (std::size_t c = 0; c < chunks; ++c) outcome.add(chunks_[c]->outcome);
    return outcome;
  }

  /// Centers pixels around zero, and copies them to the input of the first block.
  template <class Pixel>
  void copy_pixels(millrace::tensor_view<Pixel, 3> pixels, std::vector<Real>& input) const {
    const Real scale = std::is_integral_v<Pixel> ? Real(4.0 / 255) : Real(4);
    const std::size_t row = options_.side * 3;
    for (std::size_t y = 0; y < options_.side; ++y)
      for (std::size_t i = 0; i < row; ++i)
        input[(y + 1) * (row + 6) + 3 + i] = static_cast<Real>(pixels.data[y * row + i]) * scale - Real(2);
  }

  void forward(workspace& w, std::size_t sample) {
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto& b = shape_[i];
      // A row of outputs is a product of matrices: with channels innermost, an output depends on 3 x inputs consecutive
      // elements of an input row, and the next output on those that begin `inputs` later.
      for (std::size_t y = 0; y < b.side; ++y) {
        Real* const out = &w.output[i][y * b.side * b.outputs];
        for (std::size_t x = 0; x < b.side; ++x)
          std::copy_n(&learned_.weights[b.bias_at], b.outputs, out + x * b.outputs);
        for (std::size_t tap = 0; tap < 3; ++tap)
          network_kernel::multiply_add<Real>({.out = out,
                                              .left = &w.input[i][(y + tap) * b.padded_row()],
                                              .right = &learned_.weights[b.weights_at + tap * 3 * b.inputs * b.outputs],
                                              .rows = b.side,
                                              .columns = b.outputs,
                                              .depth = 3 * b.inputs,
                                              .left_row = b.inputs,
                                              .left_depth = 1});
      }
      for (Real& v : w.output[i]) v = std::max(v, Real{0});
      pool(w, i);
    }
    Real* const out = &logits_[sample * options_.classes];
    std::copy_n(&learned_.weights[dense_bias_at_], options_.classes, out);
    const Real* weight = &learned_.weights[dense_at_];
    for (std::size_t f = 0; f < features_; ++f)
      for (std::size_t c = 0; c < options_.classes; ++c) out[c] += w.features[f] * *weight++;
  }

  /// Calls f(index of the pooled value, index of its maximum in the block's output) for every pooled value.
  template <class F>
  void for_each_maximum(const workspace& w, std::size_t i, F&& f) const {
    const std::size_t side = shape_[i].side, channels = shape_[i].outputs;
    const auto& values = w.output[i];
    for (std::size_t y = 0; y < side / 2; ++y)
      for (std::size_t x = 0; x < side / 2; ++x) {
        const std::size_t corner = (2 * y * side + 2 * x) * channels;
        for (std::size_t c = 0; c < channels; ++c) {
          std::size_t best = corner + c;
          for (const std::size_t other : {best + channels, best + side * channels, best + (side + 1) * channels})
            if (values[other] > values[best]) best = other;
          f(y, x, c, best);
        }
      }
  }

  void pool(workspace& w, std::size_t i) const {
    const std::size_t half = shape_[i].side / 2, channels = shape_[i].outputs;
    const bool last = i + 1 == blocks;
    auto& to = last ? w.features : w.input[i + 1];
    const std::size_t row = last ? half : half + 2, padding = last ? 0 : 1;
    for_each_maximum(w, i, [&](std::size_t y, std::size_t x, std::size_t c, std::size_t best) {
      to[((y + padding) * row + x + padding) * channels + c] = w.output[i][best];
    });
  }

  struct target {
    std::size_t a, b;
    Real lambda;   // the weight of a
  };

  /// Softmax and loss of one sample; with `learn`, also the backward pass.
  void finish(workspace& w, std::size_t sample, const target& of, bool learn) {
    const Real* const out = &logits_[sample * options_.classes];
    const Real highest = *std::max_element(out, out + options_.classes);
    std::vector<Real> error(options_.classes);
    Real sum = 0;
    for (std::size_t c = 0; c < options_.classes; ++c) sum += error[c] = std::exp(out[c] - highest);
    for (Real& e : error) e /= sum;
    const Real expected_logit = of.lambda == 1 ? out[of.a] : of.lambda * out[of.a] + (1 - of.lambda) * out[of.b];
    w.outcome.loss_sum += static_cast<double>(std::log(sum) - (expected_logit - highest));
    w.outcome.correct += static_cast<std::size_t>(std::max_element(out, out + options_.classes) - out) == of.a;
    ++w.outcome.samples;
    if (!learn) return;
    error[of.a] -= of.lambda;
    error[of.b] -= 1 - of.lambda;
    for (std::size_t c = 0; c < options_.classes; ++c) w.gradient[dense_bias_at_ + c] += error[c];
    for (std::size_t f = 0; f < features_; ++f) {
      Real back = 0;
      for (std::size_t c = 0; c < options_.classes; ++c) {
        w.gradient[dense_at_ + f * options_.classes + c] += w.features[f] * error[c];
        back += learned_.weights[dense_at_ + f * options_.classes + c] * error[c];
      }
      w.features_grad[f] = back;
    }
    for (std::size_t i = blocks; i-- > 0;) block_backward(w, i);
  }

  void block_backward(workspace& w, std::size_t i) const {
    const auto& b = shape_[i];
    auto& grad = w.output_grad[i];
    const auto& from = i + 1 == blocks ? w.features_grad : w.input_grad;
    const std::size_t padded = (b.side + 2) * b.outputs;
    std::fill(grad.begin(), grad.end(), Real{0});
    for_each_maximum(w, i, [&](std::size_t y, std::size_t x, std::size_t c, std::size_t best) {
      if (w.output[i][best] <= 0) return;
      const std::size_t pixel = best / b.outputs, pooled = y * (b.side / 2) + x;
      grad[(pixel / b.side + 1) * padded + (pixel % b.side + 1) * b.outputs + c] = from[pooled * b.outputs + c];
    });
    for (std::size_t y = 0; y < b.side; ++y) {
      const Real* const row = &grad[(y + 1) * padded + b.outputs];
      for (std::size_t x = 0; x < b.side; ++x)
        for (std::size_t c = 0; c < b.outputs; ++c) w.gradient[b.bias_at + c] += row[x * b.outputs + c];
      for (std::size_t tap = 0; tap < 3; ++tap)
        network_kernel::multiply_add<Real>({.out = &w.gradient[b.weights_at + tap * 3 * b.inputs * b.outputs],
                                            .left = &w.input[i][(y + tap) * b.padded_row()],
                                            .right = row,
                                            .rows = 3 * b.inputs,
                                            .columns = b.outputs,
                                            .depth = b.side,
                                            .left_row = 1,
                                            .left_depth = b.inputs});
    }
    if (i == 0) return;   // the gradient of the pixels is not used
    std::fill_n(w.input_grad.begin(), b.side * b.side * b.inputs, Real{0});
    for (std::size_t y = 0; y < b.side; ++y)
      for (std::size_t tap = 0; tap < 3; ++tap)
        network_kernel::multiply_add<Real>({.out = &w.input_grad[y * b.side * b.inputs],
                                            .left = &grad[(y + tap) * padded],
                                            .right = &transposed_[i][tap * 3 * b.outputs * b.inputs],
                                            .rows = b.side,
                                            .columns = b.inputs,
                                            .depth = 3 * b.outputs,
                                            .left_row = b.outputs,
                                            .left_depth = 1});
  }

  network_file::head file_head() const { return {.side = options_.side, .classes = options_.classes}; }

  network_options options_;
  block_shape shape_[blocks];
  std::size_t features_ = 0, dense_at_ = 0, dense_bias_at_ = 0;
  adam<Real> learned_;
  std::vector<Real> logits_;
  std::vector<Real> transposed_[blocks];
  std::vector<std::unique_ptr<workspace>> chunks_;
};

using network = basic_network<float>;
