// A small network for self-supervised learning: it maps crops of one image to similar features, and different images to
// different ones.
//
//   view_network net({.seed = 1});
//   double loss = net.step(globals, locals, 1e-3);     // [B, 2, 32, 32, 3] u8 and [B, 6, 16, 16, 3] u8
//   std::vector<float> f = net.features(pixels);       // of [B, 32, 32, 3]: [B, 64], for any classifier
//
// Features are the mean of the last output of conv_tower.hpp. VICReg (Bardes, Ponce, LeCun, ICLR 2022) compares 32
// linear combinations of them: the distance of the crops to the mean of their image is minimized, the deviation of
// these means should be at least 1, and their covariances 0. Each crop is normalized to its mean color and contrast.
// Work is divided into chunks of four samples, which run in parallel; their gradients are added in order. Therefore a
// seed leads to the same weights with any number of threads.
// Errors: setup_error for shapes. Threads: one caller at a time; the work runs in its oneTBB arena.
#pragma once

#include "adam.hpp"
#include "conv_tower.hpp"

#include <millrace/item/tensor/tensor.hpp>

#include <tbb/parallel_for.h>

#include <cstdint>
#include <string>

struct view_network_options {
  std::uint64_t seed = 1;
  double weight_decay = 1e-4;
  double alike = 25, spread = 25, decorrelated = 1;   ///< weights of the three parts of VICReg
};

/// `Real` is float for training, double to check the gradients.
template <class Real>
class basic_view_network {
 public:
  using crops_view = millrace::tensor_view<const std::uint8_t, 5>;   // [B, crops, side, side, 3]
  using pixels_view = millrace::tensor_view<const std::uint8_t, 4>;
  static constexpr std::size_t feature_count = conv_tower<Real>::widths.back();

  explicit basic_view_network(const view_network_options& options) : options_(options), learned_(weight_count) {
    millrace::rng rng({.seed = options.seed});
    tower::fill(learned_.weights, rng);
    fill_normal(std::span(learned_.weights).subspan(head_at, feature_count * outputs), rng, feature_count);
  }

  /// Forward and backward pass: returns the loss and sets the gradient.
  double backward(crops_view globals, crops_view locals) {
    const std::size_t samples = globals.shape[0], crops = globals.shape[1] + locals.shape[1];
    for (const auto& view : {globals, locals})
      if (view.shape[0] != samples || samples < 2 || crops < 2 ||
          !is_valid_image(view.shape[2], view.shape[3], view.shape[4]))
        throw millrace::setup_error("the network got crops " + millrace::to_string(view.shape),
                                    "Pass [B, crops, side, side, 3] of two samples or more, with sides that 8 divides");
    const auto crop = [&](std::size_t s, std::size_t v) {
      return v < globals.shape[1] ? globals[s][v] : locals[s][v - globals.shape[1]];
    };
    crops_.resize(samples * crops);
    compared_.assign(samples * crops * outputs, 0);
    for_each_chunk(samples, [&](std::size_t, std::size_t s) {
      for (std::size_t v = 0; v < crops; ++v) {
        forward_crop(crops_[s * crops + v], crop(s, v));
        multiply(&compared_[(s * crops + v) * outputs], crops_[s * crops + v].features.data(),
                 &learned_.weights[head_at], feature_count, outputs);
      }
    });
    const double loss = compare(samples, crops);
    tower_.transpose(learned_.weights);
    transposed_.resize(outputs * feature_count);
    for (std::size_t f = 0; f < feature_count; ++f)
      for (std::size_t o = 0; o < outputs; ++o)
        transposed_[o * feature_count + f] = learned_.weights[head_at + f * outputs + o];
    if (gradients_.size() < chunks_of(samples)) gradients_.resize(chunks_of(samples));
    for (auto& gradient : gradients_) gradient.assign(weight_count, 0);
    for_each_chunk(samples, [&](std::size_t chunk, std::size_t s) {
      for (std::size_t v = 0; v < crops; ++v)
        backward_crop(crops_[s * crops + v], &slopes_[(s * crops + v) * outputs], gradients_[chunk]);
    });
    std::fill(learned_.gradient.begin(), learned_.gradient.end(), Real{0});
    for (std::size_t c = 0; c < chunks_of(samples); ++c)
      for (std::size_t i = 0; i < weight_count; ++i) learned_.gradient[i] += gradients_[c][i];
    learned_.samples = 1;   // the loss is already a mean
    return loss;
  }
  double step(crops_view globals, crops_view locals, double rate) {
    const double loss = backward(globals, locals);
    learned_.update({.rate = rate, .weight_decay = options_.weight_decay});
    return loss;
  }

  /// Returns the features [B, feature_count] of images, whose side is a multiple of 8.
  std::vector<Real> features(pixels_view pixels) {
    if (!is_valid_image(pixels.shape[1], pixels.shape[2], pixels.shape[3]))
      throw millrace::setup_error("the network got pixels " + millrace::to_string(pixels.shape),
                                  "Pass [B, side, side, 3] with a side that is a multiple of 8");
    std::vector<Real> all(pixels.shape[0] * feature_count);
    if (crops_.size() < pixels.shape[0]) crops_.resize(pixels.shape[0]);
    for_each_chunk(pixels.shape[0], [&](std::size_t, std::size_t s) {
      forward_crop(crops_[s], pixels[s]);
      std::copy(crops_[s].features.begin(), crops_[s].features.end(),
                all.begin() + static_cast<std::ptrdiff_t>(s * feature_count));
    });
    return all;
  }
  std::vector<Real>& weights() { return learned_.weights; }
  const std::vector<Real>& gradient() const { return learned_.gradient; }

 private:
  using tower = conv_tower<Real>;
  static constexpr std::size_t outputs = 32, chunk_samples = 4, last = tower::stages - 1;
  static constexpr std::size_t head_at = tower::weight_count, weight_count = head_at + feature_count * outputs;

  /// The intermediate results of one crop, which the backward pass needs.
  struct crop_state {
    typename tower::activations activations;
    std::vector<Real> row, features;
  };

  static bool is_valid_image(std::size_t height, std::size_t width, std::size_t channels) {
    return height == width && height > 0 && height % 8 == 0 && channels == 3;
  }
  static std::size_t chunks_of(std::size_t samples) { return (samples + chunk_samples - 1) / chunk_samples; }
  template <class F>
  static void for_each_chunk(std::size_t samples, F f) {
    tbb::parallel_for(std::size_t{0}, chunks_of(samples), [&](std::size_t c) {
      for (std::size_t s = c * chunk_samples; s < std::min(samples, (c + 1) * chunk_samples); ++s) f(c, s);
    });
  }

  void forward_crop(crop_state& crop, millrace::tensor_view<const std::uint8_t, 3> pixels) const {
    const auto from = pixels.span();
    const auto places = static_cast<Real>(from.size() / 3);
    std::array<Real, 3> mean{};
    for (std::size_t i = 0; i < from.size(); ++i) mean[i % 3] += static_cast<Real>(from[i]) / places;
    Real squares = 0;
    crop.row.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      crop.row[i] = static_cast<Real>(from[i]) - mean[i % 3];
      squares += crop.row[i] * crop.row[i];
    }
    const Real contrast = std::sqrt(squares / (3 * places)) + 1;
    for (Real& value : crop.row) value /= contrast;
    tower::forward(learned_.weights, crop.activations, crop.row, pixels.shape[0]);
    const auto& last_output = crop.activations.output[last];
    crop.features.assign(feature_count, 0);
    for (std::size_t i = 0; i < last_output.size(); ++i) crop.features[i % feature_count] += last_output[i];
    for (Real& f : crop.features) f *= static_cast<Real>(feature_count) / static_cast<Real>(last_output.size());
  }

  void backward_crop(crop_state& crop, const Real* slope, std::vector<Real>& gradient) const {
    for (std::size_t f = 0; f < feature_count; ++f)
      multiply(&gradient[head_at + f * outputs], &crop.features[f], slope, 1, outputs);
    std::vector<Real> back(feature_count, 0);
    multiply(back.data(), slope, transposed_.data(), outputs, feature_count);
    auto& grad = crop.activations.grad[last];
    for (std::size_t i = 0; i < grad.size(); ++i)
      grad[i] += back[i % feature_count] * static_cast<Real>(feature_count) / static_cast<Real>(grad.size());
    tower_.backward(crop.activations, gradient);
  }

  /// Returns the loss of compared_, [samples, crops, outputs], and sets its gradient slopes_.
  double compare(std::size_t samples, std::size_t crops) {
    const auto rows = static_cast<Real>(samples), views = static_cast<Real>(crops), dims = static_cast<Real>(outputs);
    const auto alike = static_cast<Real>(options_.alike), spread = static_cast<Real>(options_.spread),
               decorrelated = static_cast<Real>(options_.decorrelated);
    std::vector<Real> mean(samples * outputs, 0), mean_slope(samples * outputs, 0), center(outputs, 0);
    for (std::size_t i = 0; i < compared_.size(); ++i)
      mean[i / (crops * outputs) * outputs + i % outputs] += compared_[i] / views;
    for (std::size_t i = 0; i < mean.size(); ++i) center[i % outputs] += mean[i] / rows;
    double loss = 0;
    slopes_.resize(compared_.size());
    for (std::size_t i = 0; i < compared_.size(); ++i) {
      const Real off = compared_[i] - mean[i / (crops * outputs) * outputs + i % outputs];
      loss += static_cast<double>(alike * off * off / (rows * views * dims));
      slopes_[i] = 2 * alike * off / (rows * views * dims);
    }
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] -= center[i % outputs];
    for (std::size_t d = 0; d < outputs; ++d)
      for (std::size_t e = 0; e < outputs; ++e) {
        Real covariance = 0;
        for (std::size_t s = 0; s < samples; ++s) covariance += mean[s * outputs + d] * mean[s * outputs + e];
        covariance /= rows - 1;
        const Real deviation = std::sqrt(covariance + Real(1e-4));   // where d == e
        Real factor = 4 * decorrelated * covariance / dims;
        if (d != e) {
          loss += static_cast<double>(decorrelated * covariance * covariance / dims);
        } else if (deviation < 1) {
          loss += static_cast<double>(spread * (1 - deviation) / dims);
          factor = -spread / (dims * deviation);
        } else {
          continue;
        }
        for (std::size_t s = 0; s < samples; ++s)
          mean_slope[s * outputs + d] += factor * mean[s * outputs + e] / (rows - 1);
      }
    for (std::size_t i = 0; i < slopes_.size(); ++i)
      slopes_[i] += mean_slope[i / (crops * outputs) * outputs + i % outputs] / views;
    return loss;
  }

  /// out += row [rows] x matrix [rows, columns].
  static void multiply(Real* out, const Real* row, const Real* matrix, std::size_t rows, std::size_t columns) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) out[c] += row[r] * matrix[r * columns + c];
  }

  view_network_options options_;
  adam<Real> learned_;
  tower tower_;
  std::vector<Real> transposed_, compared_, slopes_;
  std::vector<crop_state> crops_;
  std::vector<std::vector<Real>> gradients_;
};

using view_network = basic_view_network<float>;
