// A batch of random pixels and labels, for the tests of the networks.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

struct labelled_noise {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  std::size_t side;

  labelled_noise(std::size_t samples, std::size_t side_of, std::uint64_t seed)
      : pixels(samples * side_of * side_of * 3), side(side_of) {
    millrace::rng random({.seed = seed});
    for (auto& p : pixels) p = static_cast<std::uint8_t>(random.below(256));
    for (std::size_t i = 0; i < samples; ++i) labels.push_back(static_cast<std::int32_t>(random.below(10)));
  }
  millrace::tensor_view<const std::uint8_t, 4> x() const {
    return {.data = pixels.data(), .shape = {labels.size(), side, side, 3}};
  }
  millrace::tensor_view<const std::int32_t, 1> y() const { return {.data = labels.data(), .shape = {labels.size()}}; }
};
