// Batches for the tests of mix_rows on the host and on a device: rows, their mixes, and the results of a slow loop.
#pragma once

#include "../image/slow_mixes.hpp"

#include <millrace/base/random.hpp>
#include <millrace/device/mix_rows.hpp>

#include <array>
#include <vector>

namespace mixed_batches {

template <class T>
T random_element(millrace::rng& random) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<T>(random.below(256));
  else return millrace::detail::half_element<T>(static_cast<float>(random.uniform(-3, 3)));
}

/// A batch, [rows, height, width, channels] or planar, in which some rows are pairs and some are copies of others.
template <class T>
struct batch {
  std::size_t height, width, channels;
  bool planar;
  std::vector<T> rows, expected;
  std::vector<millrace::row_mix> mixes;

  batch(std::size_t count, const std::array<std::size_t, 3>& shape, bool is_planar, millrace::rng& random)
      : height(shape[0]), width(shape[1]), channels(shape[2]), planar(is_planar), rows(count * elements()),
        mixes(count) {
    for (T& v : rows) v = random_element<T>(random);
    std::vector<std::vector<T>> slow(count);
    for (std::size_t i = 0; i < count; ++i) slow[i].assign(row(i), row(i) + elements());
    for (std::size_t i = 0; i + 1 < count; i += 2) {
      const std::size_t a = i / 4 * 4 + i % 4 / 2, b = a + 2;   // 0 and 2, 1 and 3
      if (b >= count) continue;
      const auto mix = slow_mixes::draw({.mixup_alpha = 0.8, .cutmix_alpha = 1, .probability = 0.8}, random,
                                          static_cast<long>(height), static_cast<long>(width));
      if (!mix.mixes) continue;
      mixes[a] = how(mix, b);
      mixes[b] = how(mix, a);
      slow_mixes::mix(mix, slow[a], slow[b], static_cast<long>(height), static_cast<long>(width), planar);
    }
    for (std::size_t i = 0; i < count; ++i) {   // a row without a partner may be a copy of another
      if (mixes[i].partner >= 0 || mixes[i].next_copy >= 0 || !random.chance(0.7)) continue;
      const std::size_t of = random.below(count);
      if (of == i || is_copy(of)) continue;
      std::copy_n(row(of), elements(), row(i));
      slow[i] = slow[of];
      mixes[i].next_copy = std::exchange(mixes[of].next_copy, static_cast<std::int32_t>(i));
      copies.push_back(i);
    }
    for (const auto& one : slow) expected.insert(expected.end(), one.begin(), one.end());
  }

  std::size_t elements() const { return height * width * channels; }
  std::array<std::size_t, 4> shape() const {
    const std::size_t count = mixes.size();
    return planar ? std::array{count, channels, height, width} : std::array{count, height, width, channels};
  }
  millrace::image_layout layout() const {
    return planar ? millrace::image_layout::nchw : millrace::image_layout::nhwc;
  }

 private:
  static millrace::row_mix how(const slow_mixes::pair_mix& d, std::size_t partner) {
    const auto side = [](long at) { return static_cast<std::uint16_t>(at); };
    return {.partner = static_cast<std::int32_t>(partner), .weight = static_cast<std::uint32_t>(d.weight),
            .left = side(d.left), .top = side(d.top), .right = side(d.right), .bottom = side(d.bottom)};
  }
  T* row(std::size_t i) { return rows.data() + i * elements(); }
  bool is_copy(std::size_t i) const { return std::find(copies.begin(), copies.end(), i) != copies.end(); }

  std::vector<std::size_t> copies;
};

/// Labels of a batch.
struct labels {
  std::vector<std::int32_t> a, b;
  std::vector<float> lambda;

  labels(std::size_t rows, std::size_t classes, millrace::rng& random) {
    for (std::size_t i = 0; i < rows; ++i) {
      a.push_back(static_cast<std::int32_t>(random.below(classes)));
      b.push_back(random.chance(0.2) ? a.back() : static_cast<std::int32_t>(random.below(classes)));
      lambda.push_back(static_cast<float>(random.below(65'537)) / 65'536);
    }
  }
  millrace::mixed_labels<std::int32_t> views(millrace::memory_kind memory = millrace::memory_kind::host) const {
    return {.label_a = {.data = a.data(), .shape = {a.size()}, .memory = memory, .name = "a"},
            .label_b = {.data = b.data(), .shape = {b.size()}, .memory = memory, .name = "b"},
            .lambda = {.data = lambda.data(), .shape = {lambda.size()}, .memory = memory, .name = "lambda"}};
  }
};

}  // namespace mixed_batches
