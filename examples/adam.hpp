// The weights of an example's model, and the Adam optimizer (Kingma and Ba, ICLR 2015) with decoupled weight decay
// (Loshchilov and Hutter, ICLR 2019).
//
//   adam<float> learned(weight_count);
//   learned.gradient[i] += ...;  learned.samples += rows;          // for all batches of one update
//   learned.update({.rate = 1e-3, .weight_decay = 1e-2});          // uses the mean gradient; sets it to 0
//   learned.save("model.bin", head, note);   std::string note = learned.load("model.bin", head);
//
// A file contains the exact state: weights, both moments, number of updates. `head` identifies the model.
// Errors: those of network_file.hpp; load() changes nothing if it throws. Threads: none.
#pragma once

#include "network_file.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

template <class Real>
class adam {
 public:
  std::vector<Real> weights, gradient;   ///< the gradient is the sum over ...
  std::size_t samples = 0;               ///< ... this number of samples

  explicit adam(std::size_t count = 0) : weights(count), gradient(count), moment_1_(count), moment_2_(count) {}

  struct step {
    double rate = 1e-3, weight_decay = 0;
  };
  void update(const step& s) {
    if (samples == 0) return;
    constexpr double keep_1 = 0.9, keep_2 = 0.999;
    ++updates_;
    const double bias_1 = 1 - std::pow(keep_1, static_cast<double>(updates_));
    const double bias_2 = 1 - std::pow(keep_2, static_cast<double>(updates_));
    const auto scale = static_cast<Real>(1 / static_cast<double>(std::exchange(samples, 0)));
    const auto rate_1 = static_cast<Real>(s.rate / bias_1), unbias_2 = static_cast<Real>(1 / bias_2);
    const auto decay = static_cast<Real>(1 - s.rate * s.weight_decay);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Real g = std::exchange(gradient[i], Real{0}) * scale;
      moment_1_[i] += (g - moment_1_[i]) * static_cast<Real>(1 - keep_1);
      moment_2_[i] += (g * g - moment_2_[i]) * static_cast<Real>(1 - keep_2);
      weights[i] = weights[i] * decay - rate_1 * moment_1_[i] / (std::sqrt(moment_2_[i] * unbias_2) + Real(1e-8));
    }
  }
  std::uint64_t updates() const { return updates_; }

  void save(const std::string& path, network_file::head model, std::string_view note) const {
    const std::vector<Real> all = state();
    model.updates = updates_;
    network_file::write(path, sized(model), {.values = std::as_bytes(std::span(all)), .note = note});
  }
  std::string load(const std::string& path, const network_file::head& model) {
    std::vector<Real> state(3 * weights.size());
    auto [updates, note] = network_file::read(path, sized(model), std::as_writable_bytes(std::span(state)));
    set_state(state, updates);
    return note;
  }
  /// Weights and the first and second moments, one after the other.
  std::vector<Real> state() const {
    std::vector<Real> all;
    for (const auto* part : {&weights, &moment_1_, &moment_2_}) all.insert(all.end(), part->begin(), part->end());
    return all;
  }
  /// The same, after this number of updates.
  void set_state(const std::vector<Real>& state, std::uint64_t updates) {
    updates_ = updates;
    auto from = state.begin();
    for (auto* part : {&weights, &moment_1_, &moment_2_}) {
      std::copy_n(from, weights.size(), part->begin());
      from += static_cast<std::ptrdiff_t>(weights.size());
    }
    std::fill(gradient.begin(), gradient.end(), Real{0});
    samples = 0;
  }

 private:
  network_file::head sized(network_file::head model) const {
    model.values_bytes = 3 * weights.size() * sizeof(Real);
    return model;
  }

  std::vector<Real> moment_1_, moment_2_;
  std::uint64_t updates_ = 0;
};
