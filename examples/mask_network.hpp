// A small network that predicts the class of each pixel, in plain C++.
//
//   mask_network net({.side = 32, .classes = 11, .seed = 1});
//   mask_outcome outcome = net.step(pixels, masks, 4e-3);         // [B, side, side, 3] u8 and [B, side, side] u8
//   outcome.mean_iou();  outcome.mean_loss();  net.predicted();   // [B, side, side] u8 of the last call
//
// The scores of a pixel are the sum of a linear map of each stage of conv_tower.hpp, at its resolution, and of a linear
// map of the mean over the image; then softmax, cross-entropy, Adam. Pixels of class 255 are ignored. A batch is
// divided into chunks of four samples, which run in parallel; their gradients are added in order. Therefore a seed
// leads to the same weights with any number of threads.
// Errors: setup_error for shapes and classes. Threads: one caller at a time; the work runs in its oneTBB arena.
#pragma once

#include "adam.hpp"
#include "conv_tower.hpp"

#include <millrace/item/tensor/tensor.hpp>

#include <tbb/parallel_for.h>

#include <cstdint>
#include <string>

struct mask_network_options {
  std::size_t side = 32;      ///< of the input, in pixels; a multiple of 8
  std::size_t classes = 11;   ///< at most 16
  std::uint64_t seed = 1;
  double weight_decay = 1e-2;
};

/// The result of a pass over a batch.
struct mask_outcome {
  double loss_sum = 0;
  std::uint64_t pixels = 0;
  std::array<std::array<std::uint64_t, 16>, 16> counts{};   ///< [class][predicted class], in pixels

  double mean_loss() const { return loss_sum / static_cast<double>(pixels); }
  /// Intersection over union, as a mean over all classes that occurred or were predicted.
  double mean_iou() const {
    double sum = 0, classes = 0;
    for (std::size_t c = 0; c < 16; ++c) {
      std::uint64_t either = 0;
      for (std::size_t other = 0; other < 16; ++other) either += counts[c][other] + (other == c ? 0 : counts[other][c]);
      if (either == 0) continue;
      sum += static_cast<double>(counts[c][c]) / static_cast<double>(either);
      ++classes;
    }
    return classes > 0 ? sum / classes : 0;
  }
  void add(const mask_outcome& o) {
    loss_sum += o.loss_sum;
    pixels += o.pixels;
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 16; ++j) counts[i][j] += o.counts[i][j];
  }
};

/// `Real` is float for training, double to check the gradients.
template <class Real>
class basic_mask_network {
 public:
  using pixels_view = millrace::tensor_view<const std::uint8_t, 4>;
  using masks_view = millrace::tensor_view<const std::uint8_t, 3>;
  static constexpr std::uint8_t ignored = 255;

  explicit basic_mask_network(const mask_network_options& options) : options_(options), learned_(weight_count) {
    if (options.side == 0 || options.side % 8 != 0 || options.classes < 2 || options.classes > columns)
      throw millrace::setup_error("the options of a mask network are wrong: got a side of " +
                                      std::to_string(options.side) + " pixels and " + std::to_string(options.classes) +
                                      " classes",
                                  "Use a side that is a multiple of 8, and 2 to 16 classes");
    millrace::rng rng({.seed = options.seed});
    tower::fill(learned_.weights, rng);
    for (std::size_t i = 0; i <= tower::stages; ++i)
      fill_normal(std::span(learned_.weights).subspan(head_at(i), head_width(i) * columns), rng, 8 * head_width(i));
  }

  /// Forward and backward pass; accumulates gradients until the next update().
  mask_outcome backward(pixels_view pixels, masks_view masks) {
    tower_.transpose(learned_.weights);
    for (std::size_t i = 0; i <= tower::stages; ++i) {
      transposed_[i].resize(columns * head_width(i));
      for (std::size_t in = 0; in < head_width(i); ++in)
        for (std::size_t c = 0; c < columns; ++c)
          transposed_[i][c * head_width(i) + in] = learned_.weights[head_at(i) + in * columns + c];
    }
    const mask_outcome outcome = run(pixels, masks, true);
    for (std::size_t c = 0; c < chunks_of(pixels.shape[0]); ++c)
      for (std::size_t i = 0; i < weight_count; ++i) learned_.gradient[i] += chunks_[c].gradient[i];
    learned_.samples += outcome.pixels;
    return outcome;
  }
  /// One step of the optimizer, with the mean gradient of all pixels since the last step.
  void update(double rate) { learned_.update({.rate = rate, .weight_decay = options_.weight_decay}); }
  mask_outcome step(pixels_view pixels, masks_view masks, double rate) {
    const mask_outcome outcome = backward(pixels, masks);
    update(rate);
    return outcome;
  }
  mask_outcome evaluate(pixels_view pixels, masks_view masks) { return run(pixels, masks, false); }

  /// [B, side, side] of the last call; valid until the next call.
  masks_view predicted() const { return predicted_.view(); }
  std::vector<Real>& weights() { return learned_.weights; }
  /// The sum over the pixels since the last update().
  const std::vector<Real>& gradient() const { return learned_.gradient; }

 private:
  using tower = conv_tower<Real>;
  static constexpr std::size_t columns = 16, chunk_samples = 4, last = tower::stages - 1;

  /// A matrix for each stage, one more for the mean of the last stage, and the bias of the classes.
  static constexpr std::size_t head_width(std::size_t i) { return tower::widths[std::min(i, last)]; }
  static constexpr std::size_t head_at(std::size_t i) {
    return i == 0 ? tower::weight_count : head_at(i - 1) + head_width(i - 1) * columns;
  }
  static constexpr std::size_t bias_at = head_at(tower::stages + 1), weight_count = bias_at + columns;

  struct workspace {
    typename tower::activations activations;
    std::vector<Real> row, part[tower::stages];   // part: the scores of each stage, [side, side, columns]
    std::vector<Real> mean, gradient;
    mask_outcome outcome;
  };

  static std::size_t chunks_of(std::size_t samples) { return (samples + chunk_samples - 1) / chunk_samples; }

  mask_outcome run(pixels_view pixels, masks_view masks, bool learn) {
    const std::size_t samples = pixels.shape[0], side = options_.side;
    const std::array expected{samples, side, side};
    if (pixels.shape != std::array{samples, side, side, std::size_t{3}} || masks.shape != expected)
      throw millrace::setup_error("the network got pixels " + millrace::to_string(pixels.shape) + " and masks " +
                                      millrace::to_string(masks.shape) + ", expected a side of " + std::to_string(side),
                                  "Render both with one geometry of this size");
    for (const std::uint8_t label : masks.span())
      if (label >= options_.classes && label != ignored)
        throw millrace::setup_error("a mask has class " + std::to_string(label) + ", and the network has " +
                                        std::to_string(options_.classes) + " classes",
                                    "Use classes below this number, or 255 for ignored pixels");
    if (chunks_.size() < chunks_of(samples)) chunks_.resize(chunks_of(samples));
    predicted_ = millrace::tensor<std::uint8_t, 3>({samples, side, side});
    tbb::parallel_for(std::size_t{0}, chunks_of(samples), [&](std::size_t c) {
      workspace& w = chunks_[c];
      w.gradient.assign(learn ? weight_count : 0, 0);
      w.outcome = {};
      for (std::size_t s = c * chunk_samples; s < std::min(samples, (c + 1) * chunk_samples); ++s) {
        forward(w, pixels[s].span());
        finish(w, masks[s].span(), predicted_[s].span(), learn);
        if (learn) head_backward(w);
      }
    });
    mask_outcome all;
    for (std::size_t c = 0; c < chunks_of(samples); ++c) all.add(chunks_[c].outcome);
    return all;
  }

  void forward(workspace& w, std::span<const std::uint8_t> pixels) const {
    w.row.resize(pixels.size());
    for (std::size_t i = 0; i < pixels.size(); ++i) w.row[i] = static_cast<Real>(pixels[i]) * Real(4.0 / 255) - Real(2);
    tower::forward(learned_.weights, w.activations, w.row, options_.side);
    for (std::size_t i = 0; i < tower::stages; ++i) {
      const std::size_t places = (options_.side >> i) * (options_.side >> i);
      w.part[i].assign(places * columns, 0);
      multiply(w.part[i].data(), w.activations.output[i].data(), &learned_.weights[head_at(i)], places, columns,
               head_width(i));
    }
    const auto& features = w.activations.output[last];
    w.mean.assign(head_width(last), 0);
    for (std::size_t i = 0; i < features.size(); ++i) w.mean[i % w.mean.size()] += features[i];
    for (Real& m : w.mean) m *= static_cast<Real>(w.mean.size()) / static_cast<Real>(features.size());
    // The scores of the image and the bias are added at every place of the coarsest stage.
    std::array<Real, columns> everywhere;
    std::copy_n(&learned_.weights[bias_at], columns, everywhere.begin());
    multiply(everywhere.data(), w.mean.data(), &learned_.weights[head_at(tower::stages)], 1, columns, w.mean.size());
    for (std::size_t i = 0; i < w.part[last].size(); ++i) w.part[last][i] += everywhere[i % columns];
  }

  /// Softmax and loss of each pixel. With `learn`, the gradients replace the parts.
  void finish(workspace& w, std::span<const std::uint8_t> mask, std::span<std::uint8_t> predicted, bool learn) const {
    const std::size_t side = options_.side, classes = options_.classes;
    std::vector<Real> error(side * side * columns, 0);
    for (std::size_t at = 0; at < side * side; ++at) {
      Real* const z = &error[at * columns];
      for (std::size_t i = 0; i < tower::stages; ++i) {
        const Real* const part = &w.part[i][place(at, i) * columns];
        for (std::size_t c = 0; c < columns; ++c) z[c] += part[c];
      }
      const auto best = static_cast<std::size_t>(std::max_element(z, z + classes) - z);
      predicted[at] = static_cast<std::uint8_t>(best);
      const std::size_t label = mask[at];
      if (label == ignored) {
        std::fill_n(z, columns, Real{0});
        continue;
      }
      const Real highest = z[best], own = z[label];
      Real sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += z[c] = std::exp(z[c] - highest);
      for (std::size_t c = 0; c < classes; ++c) z[c] /= sum;
      std::fill(z + classes, z + columns, Real{0});
      z[label] -= 1;
      w.outcome.loss_sum += static_cast<double>(std::log(sum) - (own - highest));
      ++w.outcome.pixels;
      ++w.outcome.counts[label][best];
    }
    if (!learn) return;
    for (std::size_t i = 0; i < tower::stages; ++i) {
      std::fill(w.part[i].begin(), w.part[i].end(), Real{0});
      for (std::size_t at = 0; at < side * side; ++at)
        for (std::size_t c = 0; c < columns; ++c) w.part[i][place(at, i) * columns + c] += error[at * columns + c];
    }
  }

  void head_backward(workspace& w) const {
    for (std::size_t i = 0; i < tower::stages; ++i) {
      const std::size_t places = w.part[i].size() / columns, width = head_width(i);
      network_kernel::multiply_add<Real>({.out = &w.gradient[head_at(i)],
                                          .left = w.activations.output[i].data(),
                                          .right = w.part[i].data(),
                                          .rows = width,
                                          .columns = columns,
                                          .depth = places,
                                          .left_row = 1,
                                          .left_depth = width});
      multiply(w.activations.grad[i].data(), w.part[i].data(), transposed_[i].data(), places, width, columns);
    }
    std::array<Real, columns> everywhere{};
    for (std::size_t i = 0; i < w.part[last].size(); ++i) everywhere[i % columns] += w.part[last][i];
    for (std::size_t c = 0; c < columns; ++c) w.gradient[bias_at + c] += everywhere[c];
    multiply(&w.gradient[head_at(tower::stages)], w.mean.data(), everywhere.data(), w.mean.size(), columns, 1);
    std::vector<Real> mean_grad(w.mean.size(), 0);
    multiply(mean_grad.data(), everywhere.data(), transposed_[tower::stages].data(), 1, mean_grad.size(), columns);
    auto& grad = w.activations.grad[last];
    for (std::size_t i = 0; i < grad.size(); ++i)
      grad[i] += mean_grad[i % mean_grad.size()] * static_cast<Real>(mean_grad.size()) / static_cast<Real>(grad.size());
    tower_.backward(w.activations, w.gradient);
  }

  /// Returns the place of a pixel in stage i.
  std::size_t place(std::size_t at, std::size_t i) const {
    const std::size_t side = options_.side;
    return (at / side >> i) * (side >> i) + (at % side >> i);
  }
  /// out += left [rows, depth] x right [depth, columns].
  static void multiply(Real* out, const Real* left, const Real* right, std::size_t rows, std::size_t columns_,
                       std::size_t depth) {
    network_kernel::multiply_add<Real>({.out = out,
                                        .left = left,
                                        .right = right,
                                        .rows = rows,
                                        .columns = columns_,
                                        .depth = depth,
                                        .left_row = depth,
                                        .left_depth = 1});
  }

  mask_network_options options_;
  adam<Real> learned_;
  tower tower_;
  std::vector<Real> transposed_[tower::stages + 1];
  std::vector<workspace> chunks_;
  millrace::tensor<std::uint8_t, 3> predicted_;
};

using mask_network = basic_mask_network<float>;
