// The convolutions of the examples' networks for masks and views. Their other layers are in those networks.
//
//   conv_tower<float> tower;                          // without weights: the caller stores tower.weight_count of them
//   tower.fill(weights, rng);
//   conv_tower<float>::activations p;                 // of one image; one object for each concurrent image
//   tower.forward(weights, p, row, 32);               // row: [32, 32, 3]; p.output[i]: [32 >> i, 32 >> i, widths[i]]
//   p.grad[i][n] += ...;                              // the gradient of the loss by p.output[i][n]
//   tower.transpose(weights);                              // once for these weights, before backward()
//   tower.backward(p, gradient);                      // adds to the gradient of each weight
//
// Four stages of 3x3 convolution and ReLU, with 2x2 maximum pooling between them. An element of the last output depends
// on 38 x 38 pixels. Threads: forward() and backward() of different images may run concurrently.
#pragma once

#include "network_kernel.hpp"

#include <millrace/base/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

/// He initialization (ICCV 2015): normally distributed, with variance 2 / fan_in, by the Box-Muller method.
template <class Real>
void fill_normal(std::span<Real> weights, millrace::rng& rng, std::size_t fan_in) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(fan_in));
  for (Real& weight : weights) {
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    weight = static_cast<Real>(deviation * radius * std::cos(2 * std::numbers::pi * rng.uniform()));
  }
}

template <class Real>
class conv_tower {
 public:
  static constexpr std::size_t stages = 4;
  static constexpr std::array<std::size_t, stages> widths{16, 32, 64, 64};   // multiples of the kernel's columns

  static constexpr std::size_t inputs(std::size_t i) { return i == 0 ? 3 : widths[i - 1]; }
  /// The first weight of a stage: 3 x 3 x inputs rows of `widths[i]`, then the bias.
  static constexpr std::size_t weights_at(std::size_t i) {
    return i == 0 ? 0 : weights_at(i - 1) + (9 * inputs(i - 1) + 1) * widths[i - 1];
  }
  static constexpr std::size_t bias_at(std::size_t i) { return weights_at(i) + 9 * inputs(i) * widths[i]; }
  static constexpr std::size_t weight_count = weights_at(stages);

  /// The intermediate results of one image, which the backward pass needs.
  struct activations {
    std::size_t side = 0;
    std::vector<Real> input[stages];    // [side + 2, side + 2, inputs]; the padding stays zero
    std::vector<Real> output[stages];   // [side, side, width], after the ReLU
    std::vector<Real> grad[stages];     // of the output
    std::vector<Real> padded, input_grad;
  };

  static void fill(std::span<Real> weights, millrace::rng& rng) {
    for (std::size_t i = 0; i < stages; ++i)
      fill_normal(weights.subspan(weights_at(i), 9 * inputs(i) * widths[i]), rng, 9 * inputs(i));
  }

  /// `row` is [side, side, 3]; the side is a multiple of 8. Sets the output of all stages, and all of grad to 0.
  static void forward(std::span<const Real> weights, activations& p, std::span<const Real> row, std::size_t side) {
    resize(p, side);
    for (std::size_t y = 0; y < side; ++y)
      std::copy_n(&row[y * side * 3], side * 3, &p.input[0][((y + 1) * (side + 2) + 1) * 3]);
    for (std::size_t i = 0; i < stages; ++i) {
      convolve(weights, p, i);
      if (i + 1 < stages)
        for_each_maximum(p, i, [&](std::size_t y, std::size_t x, std::size_t c, std::size_t best) {
          p.input[i + 1][((y + 1) * ((side >> (i + 1)) + 2) + x + 1) * widths[i] + c] = p.output[i][best];
        });
    }
  }

  /// Prepares the gradient of the inputs: a convolution with reversed taps, and with inputs and outputs exchanged.
  void transpose(std::span<const Real> weights) {
    for (std::size_t i = 1; i < stages; ++i) {
      transposed_[i].resize(9 * inputs(i) * widths[i]);
      for (std::size_t tap = 0; tap < 9; ++tap)
        for (std::size_t in = 0; in < inputs(i); ++in)
          for (std::size_t out = 0; out < widths[i]; ++out)
            transposed_[i][((8 - tap) * widths[i] + out) * inputs(i) + in] =
                weights[weights_at(i) + (tap * inputs(i) + in) * widths[i] + out];
    }
  }

  /// Computes the gradient from p.grad, which it modifies.
  void backward(activations& p, std::span<Real> gradient) const {
    for (std::size_t i = stages; i-- > 0;) {
      const std::size_t side = p.side >> i, width = widths[i], in = inputs(i), padded_row = (side + 2) * width;
      p.padded.assign((side + 2) * padded_row, 0);
      for (std::size_t y = 0; y < side; ++y)
        for (std::size_t x = 0; x < side * width; ++x)
          if (p.output[i][y * side * width + x] > 0)
            p.padded[(y + 1) * padded_row + width + x] = p.grad[i][y * side * width + x];
      for (std::size_t y = 0; y < side; ++y) {
        const Real* const row = &p.padded[(y + 1) * padded_row + width];
        for (std::size_t x = 0; x < side; ++x)
          for (std::size_t c = 0; c < width; ++c) gradient[bias_at(i) + c] += row[x * width + c];
        for (std::size_t tap = 0; tap < 3; ++tap)
          network_kernel::multiply_add<Real>({.out = &gradient[weights_at(i) + tap * 3 * in * width],
                                              .left = &p.input[i][(y + tap) * (side + 2) * in],
                                              .right = row,
                                              .rows = 3 * in,
                                              .columns = width,
                                              .depth = side,
                                              .left_row = 1,
                                              .left_depth = in});
      }
      if (i == 0) return;   // the gradient of the pixels is not used
      p.input_grad.assign(side * side * in, 0);
      for (std::size_t y = 0; y < side; ++y)
        for (std::size_t tap = 0; tap < 3; ++tap)
          network_kernel::multiply_add<Real>({.out = &p.input_grad[y * side * in],
                                              .left = &p.padded[(y + tap) * padded_row],
                                              .right = &transposed_[i][tap * 3 * width * in],
                                              .rows = side,
                                              .columns = in,
                                              .depth = 3 * width,
                                              .left_row = width,
                                              .left_depth = 1});
      for_each_maximum(p, i - 1, [&](std::size_t y, std::size_t x, std::size_t c, std::size_t best) {
        p.grad[i - 1][best] += p.input_grad[(y * side + x) * in + c];
      });
    }
  }

 private:
  static void resize(activations& p, std::size_t side) {
    for (std::size_t i = 0; i < stages; ++i) {
      const std::size_t s = side >> i;
      if (p.side != side) p.input[i].assign((s + 2) * (s + 2) * inputs(i), 0);
      p.output[i].resize(s * s * widths[i]);
      p.grad[i].assign(s * s * widths[i], 0);
    }
    p.side = side;
  }

  static void convolve(std::span<const Real> weights, activations& p, std::size_t i) {
    const std::size_t side = p.side >> i, width = widths[i], in = inputs(i);
    for (std::size_t y = 0; y < side; ++y) {
      Real* const out = &p.output[i][y * side * width];
      for (std::size_t x = 0; x < side; ++x) std::copy_n(&weights[bias_at(i)], width, out + x * width);
      for (std::size_t tap = 0; tap < 3; ++tap)
        network_kernel::multiply_add<Real>({.out = out,
                                            .left = &p.input[i][(y + tap) * (side + 2) * in],
                                            .right = &weights[weights_at(i) + tap * 3 * in * width],
                                            .rows = side,
                                            .columns = width,
                                            .depth = 3 * in,
                                            .left_row = in,
                                            .left_depth = 1});
      for (std::size_t x = 0; x < side * width; ++x) out[x] = std::max(out[x], Real{0});
    }
  }

  /// Calls f(y, x, channel, index of the maximum in the output of stage i) for each input of stage i + 1.
  template <class F>
  static void for_each_maximum(const activations& p, std::size_t i, F&& f) {
    const std::size_t side = p.side >> i, channels = widths[i];
    const auto& values = p.output[i];
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

  std::vector<Real> transposed_[stages];
};
