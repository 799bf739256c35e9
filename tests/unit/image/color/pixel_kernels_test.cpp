#include <millrace/image/color/vector_kernels.hpp>
#include <millrace/simd/cpu_features.hpp>

#include "../../../thorough.hpp"
#include "slow_colors.hpp"
#include "slow_operations.hpp"

#include <doctest/doctest.h>

#include <numeric>

namespace {

namespace mr = millrace;
using mr::detail::pending_byte_tables;

/// Calls check(kernels) with each build that this CPU runs.
template <class Check>
void for_each_build(const Check& check) {
  check(mr::detail::portable_pixels{});
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check(mr::detail::word_layer::pixels{});
#endif
}

pending_byte_tables all(const mr::detail::byte_table& table) {
  pending_byte_tables tables;
  tables.then(table);
  return tables;
}

/// Compares all ways to apply tables with `expected`.
void check_tables(const slow::picture& from, const pending_byte_tables& tables, const slow::picture& expected) {
  slow::picture p = from;
  mr::detail::portable_pixels::apply(tables, p.data.data(), p.count());
  CHECK(p == expected);
#if defined __x86_64__ || defined __aarch64__
  for (const bool permutes : {false, true}) {
    if (!mr::detail::cpu_has_word_layer() || (permutes && !mr::detail::cpu_has_byte_permutations())) continue;
    p = from;
    mr::detail::word_layer::pixels::apply(tables, p.data.data(), p.count(), permutes);
    CHECK(p == expected);
  }
#endif
}

}  // namespace

TEST_CASE("tables of one byte produce the bytes of the slow operations") {
  for (const slow::picture& from : slow::pictures()) {
    CAPTURE(from.width);
    CAPTURE(from.height);
    const auto check = [&](const mr::detail::byte_table& table, const auto& slowly) {
      slow::picture expected = from;
      slowly(expected);
      check_tables(from, all(table), expected);
    };
    for (const double f : slow::factors())
      check(mr::detail::blend_table(0, static_cast<float>(f)), [&](slow::picture& p) { slow::brightness(p, f); });
    for (int bits = 0; bits <= 8; ++bits)
      check(mr::detail::posterize_table(bits), [&](slow::picture& p) { slow::posterize(p, bits); });
    for (const double t : {0.0, 0.5, 1.0, 127.5, 128.0, 178.5, 255.0, 255.5, 256.0})
      check(mr::detail::solarize_table(t), [&](slow::picture& p) { slow::solarize(p, t); });
    for (const int amount : {0, 1, 110, 127, 128, 255})
      check(mr::detail::solarize_add_table(amount), [&](slow::picture& p) { slow::solarize_add(p, amount); });
    check(mr::detail::invert_table(), [](slow::picture& p) { slow::invert(p); });
  }
}

TEST_CASE("contrast blends with the mean of L") {
  for_each_build([](auto build) {
    using kernels = decltype(build);
    for (const slow::picture& from : slow::pictures())
      for (const double f : slow::factors()) {
        const std::uint64_t sum = kernels::luma_sum(from.data.data(), from.count());
        const auto mean = static_cast<int>((2 * sum + from.count()) / (2 * from.count()));
        slow::picture expected = from;
        slow::contrast(expected, f);
        check_tables(from, all(mr::detail::blend_table(mean, static_cast<float>(f))), expected);
      }
  });
}

TEST_CASE("saturation and gray") {
  for_each_build([](auto build) {
    using kernels = decltype(build);
    for (const slow::picture& from : slow::pictures()) {
      slow::picture p = from, expected = from;
      kernels::make_gray(p.data.data(), p.count());
      slow::grayscale(expected);
      CHECK(p == expected);
      for (const double f : slow::factors()) {
        CAPTURE(f);
        p = expected = from;
        kernels::saturate(p.data.data(), p.count(), static_cast<float>(f));
        slow::saturation(expected, f);
        CHECK(p == expected);
      }
    }
  });
}

TEST_CASE("ranges and counts, and the results of autocontrast and equalize") {
  for_each_build([](auto build) {
    using kernels = decltype(build);
    for (const slow::picture& from : slow::pictures()) {
      const auto r = kernels::ranges(from.data.data(), from.count());
      pending_byte_tables tables;
      tables.then(mr::detail::autocontrast_table(r[0].low, r[0].high),
                  mr::detail::autocontrast_table(r[1].low, r[1].high),
                  mr::detail::autocontrast_table(r[2].low, r[2].high));
      slow::picture expected = from;
      slow::autocontrast(expected);
      check_tables(from, tables, expected);

      const auto counts = kernels::count(from.data.data(), from.count());
      tables.clear();
      tables.then(mr::detail::equalize_table(counts[0]), mr::detail::equalize_table(counts[1]),
                  mr::detail::equalize_table(counts[2]));
      expected = from;
      slow::equalize(expected);
      check_tables(from, tables, expected);
    }
  });
}

TEST_CASE("every pair of ends that autocontrast may find") {
  for (int low = 0; low < 256; ++low)
    for (int high = low; high < 256; ++high) {
      slow::picture p(static_cast<std::size_t>(high - low + 1), 1);   // each value between the ends once
      for (std::size_t i = 0; i < p.data.size(); ++i)
        p.data[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(low) + i / 3);
      const auto table = mr::detail::autocontrast_table(low, high);
      slow::picture expected = p;
      slow::autocontrast(expected);
      bool equal = true;
      for (std::size_t i = 0; i < p.data.size(); ++i) equal = equal && table[p.data[i]] == expected.data[i];
      CAPTURE(low);
      CAPTURE(high);
      CHECK(equal);
    }
}

TEST_CASE("counts go through a table") {
  const slow::picture from = slow::random_picture(90, 70, 4);
  const auto table = mr::detail::posterize_table(3);
  slow::picture through = from;
  slow::posterize(through, 3);
  const auto before = mr::detail::portable_pixels::count(from.data.data(), from.count());
  const auto after = mr::detail::portable_pixels::count(through.data.data(), through.count());
  for (std::size_t c = 0; c < 3; ++c) CHECK(mr::detail::histogram_after(before[c], table) == after[c]);
}

TEST_CASE("tables one after the other are one table") {
  for (const slow::picture& from : slow::pictures()) {
    pending_byte_tables tables;
    tables.then(mr::detail::blend_table(0, 1.4F));
    tables.then(mr::detail::solarize_table(100), mr::detail::identity_table(), mr::detail::invert_table());
    tables.then(mr::detail::posterize_table(5));
    slow::picture expected = from;
    slow::brightness(expected, 1.4);
    for (std::size_t i = 0; i < expected.count(); ++i) {
      auto& red = expected.data[3 * i];
      auto& blue = expected.data[3 * i + 2];
      red = red < 100 ? red : static_cast<std::uint8_t>(255 - red);
      blue = static_cast<std::uint8_t>(255 - blue);
    }
    slow::posterize(expected, 5);
    check_tables(from, tables, expected);
  }
}

TEST_CASE("sharpness blends with the smoothed image") {
  std::vector<std::uint8_t> memory;
  for (const slow::picture& from : slow::pictures())
    for (const double f : slow::factors()) {
      CAPTURE(from.width);
      CAPTURE(from.height);
      CAPTURE(f);
      slow::picture expected = from, p = from;
      slow::sharpness(expected, f);
      mr::detail::sharpen<mr::detail::portable_sharpening>(
          {.data = p.data.data(), .width = p.width, .height = p.height}, static_cast<float>(f), memory);
      CHECK(p == expected);
#if defined __x86_64__ || defined __aarch64__
      if (!mr::detail::cpu_has_word_layer()) continue;
      p = from;
      mr::detail::sharpen<mr::detail::word_layer::sharpening>(
          {.data = p.data.data(), .width = p.width, .height = p.height}, static_cast<float>(f), memory);
      CHECK(p == expected);
#endif
    }
}

namespace {

/// All colors with this red, or all HSV with this hue.
slow::picture all_with(std::size_t first) {
  slow::picture p(256, 256);
  for (std::size_t i = 0; i < p.count(); ++i) {
    p.data[3 * i] = static_cast<std::uint8_t>(first);
    p.data[3 * i + 1] = static_cast<std::uint8_t>(i / 256);
    p.data[3 * i + 2] = static_cast<std::uint8_t>(i % 256);
  }
  return p;
}

template <class Slowly>
slow::picture computed_slowly(const slow::picture& from, const Slowly& slowly) {
  slow::picture expected = from;
  for (std::size_t i = 0; i < expected.count(); ++i) {
    const auto p = slowly(from.data[3 * i], from.data[3 * i + 1], from.data[3 * i + 2]);
    std::copy(p.begin(), p.end(), expected.data.begin() + static_cast<std::ptrdiff_t>(3 * i));
  }
  return expected;
}

}  // namespace

TEST_CASE("every color becomes Pillow's HSV, and every HSV becomes Pillow's color") {
  for (std::size_t first = 0; first < 256; first += stride(37)) {
    CAPTURE(first);
    const slow::picture from = all_with(first);
    const slow::picture hsv = computed_slowly(from, slow::hsv_of), rgb = computed_slowly(from, slow::rgb_of);
    slow::picture p = from;
    mr::detail::portable_hues::to_hsv(p.data.data(), p.count());
    CHECK(p == hsv);
    p = from;
    mr::detail::portable_hues::from_hsv(p.data.data(), p.count());
    CHECK(p == rgb);
#if defined __x86_64__ || defined __aarch64__
    if (!mr::detail::cpu_has_word_layer()) continue;
    p = from;
    mr::detail::word_layer::hues::to_hsv(p.data.data(), p.count());
    CHECK(p == hsv);
    p = from;
    mr::detail::word_layer::hues::from_hsv(p.data.data(), p.count());
    CHECK(p == rgb);
#endif
  }
}

TEST_CASE("hues are rotated by a fraction of the circle") {
  for (const slow::picture& from : slow::pictures())
    for (const double by : {-0.5, -0.3, -0.1, -0.003, 0.0, 0.003, 0.004, 0.05, 0.1, 0.25, 0.4999, 0.5}) {
      CAPTURE(by);
      slow::picture expected = from, p = from;
      slow::hue(expected, by);
      const int shift = static_cast<int>(by * 255) & 255;
      mr::detail::portable_hues::shift(p.data.data(), p.count(), shift);
      CHECK(p == expected);
#if defined __x86_64__ || defined __aarch64__
      if (!mr::detail::cpu_has_word_layer()) continue;
      p = from;
      mr::detail::word_layer::hues::shift(p.data.data(), p.count(), shift);
      CHECK(p == expected);
#endif
    }
}

namespace {

mr::detail::rgb_pixels pixels_of(slow::picture& p) {
  return {.data = p.data.data(), .width = p.width, .height = p.height};
}

template <class Kernels>
void check_gaussian() {
  mr::detail::gaussian_blur<Kernels> blur;
  for (const slow::picture& from : slow::pictures())
    for (const std::pair<int, double>& kernel : some<std::pair<int, double>>(2, {
             {3, 0.8}, {1, 1.0}, {5, 0.1}, {9, 0.3}, {7, 3.0}, {9, 1.2}, {23, 2.0}, {23, 0.5}, {9, 2.0}, {41, 30.0}})) {
      const int size = kernel.first;
      const double sigma = kernel.second;
      CAPTURE(from.width);
      CAPTURE(from.height);
      CAPTURE(size);
      CAPTURE(sigma);
      const auto weights = mr::detail::gaussian_weights_of(static_cast<std::size_t>(size), sigma);
      slow::picture p = from, expected = from;
      if (!weights.empty()) slow::integer_blur(expected, weights);
      blur.run(pixels_of(p), weights);
      CHECK(p == expected);
    }
}

template <class Kernels>
void check_boxes() {
  mr::detail::box_blur<Kernels> blur;
  for (const slow::picture& from : slow::pictures())
    for (const double sigma : some(3, {0.0, 1e-4, 0.1, 0.3, 0.5, 1.0, 1.37, 2.0, 5.0, 11.0, 50.0, 140.0})) {
      CAPTURE(from.width);
      CAPTURE(from.height);
      CAPTURE(sigma);
      slow::picture expected = from, p = from;
      slow::pillow_blur(expected, sigma);
      blur.run(pixels_of(p), mr::detail::box_weights_of(sigma));
      CHECK(p == expected);
    }
}

}  // namespace

TEST_CASE("Pillow's blur is six passes of a box with fractional ends") {
  check_boxes<mr::detail::portable_boxes>();
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check_boxes<mr::detail::word_layer::boxes>();
#endif
}

TEST_CASE("torchvision's blur has integer weights, first along columns, then along rows") {
  check_gaussian<mr::detail::portable_gaussian>();
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check_gaussian<mr::detail::word_layer::gaussian>();
#endif
}

TEST_CASE("torchvision's blur is within a level of the sum that torchvision rounds") {
  mr::detail::gaussian_blur<mr::detail::portable_gaussian> blur;
  double worst = 0;
  for (const slow::picture& from : slow::pictures())
    for (const auto& [size, sigma] : {std::pair{3, 0.8}, {9, 0.1}, {9, 2.0}, {23, 1.3}, {23, 6.0}}) {
      slow::picture p = from;
      blur.run(pixels_of(p), mr::detail::gaussian_weights_of(static_cast<std::size_t>(size), sigma));
      for (std::size_t y = 0; y < p.height; y += 3)
        for (std::size_t x = 0; x < p.width; x += 2) {
          const double real = slow::gaussian_at(from, static_cast<int>(x), static_cast<int>(y), 1, size, sigma);
          worst = std::max(worst, std::abs(real - p.at(x, y, 1)));
        }
    }
  MESSAGE("at most ", worst, " levels from the real number");
  CHECK(worst < 0.53);   // therefore the rounded real number differs by at most one level
}

TEST_CASE("weights of torchvision's blur sum to one, and are those of a Gaussian") {
  for (std::size_t size = 1; size < 200; size += 2)
    for (const double sigma : {0.05, 0.1, 0.5, 1.0, 2.0, 7.0, 100.0}) {
      const auto w = mr::detail::gaussian_weights_of(size, sigma);
      if (w.empty()) continue;
      CHECK(w.size() == size / 2 + 1);
      CHECK(2 * std::accumulate(w.begin() + 1, w.end(), 0) + w[0] == 32'768);
      double total = 1;
      for (std::size_t d = 1; d <= size / 2; ++d)
        total += 2 * std::exp(-static_cast<double>(d * d) / (2 * sigma * sigma));
      for (std::size_t d = 0; d <= size / 2; ++d) {
        const double real = 32'768 * std::exp(-static_cast<double>(d * d) / (2 * sigma * sigma)) / total;
        CHECK(std::abs(w[d] - real) < 1.6);
      }
    }
}

TEST_CASE("a blur keeps constant images, and a tiny sigma keeps all") {
  for (const int value : {0, 1, 128, 255}) {
    slow::picture from(30, 20);
    std::fill(from.data.begin(), from.data.end(), static_cast<std::uint8_t>(value));
    slow::picture p = from;
    mr::detail::gaussian_blur<mr::detail::portable_gaussian>().run(pixels_of(p),
                                                                   mr::detail::gaussian_weights_of(23, 3));
    CHECK(p == from);
  }
  // An image of one pixel is mirrored to a constant one; rounded products may not add up to more.
  for (const auto& [size, sigma] : {std::pair{3, 0.8}, {9, 0.3}, {9, 2.0}, {23, 1.3}, {41, 30.0}, {199, 7.0},
                                     {199, 60.0}})
    for (int value = 0; value < 256; ++value) {
      slow::picture p(1, 1);
      std::fill(p.data.begin(), p.data.end(), static_cast<std::uint8_t>(value));
      mr::detail::gaussian_blur<mr::detail::portable_gaussian>().run(
          pixels_of(p), mr::detail::gaussian_weights_of(static_cast<std::size_t>(size), sigma));
      CHECK(p.data[0] == value);
    }
  CHECK(mr::detail::gaussian_weights_of(9, 1e-9).empty());
  CHECK(mr::detail::gaussian_weights_of(9, 1e-200).empty());
  CHECK(mr::detail::box_weights_of(0).changes_nothing());
}
