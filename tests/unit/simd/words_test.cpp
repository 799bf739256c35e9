#include <millrace/base/half.hpp>
#include <millrace/base/random.hpp>
#include <millrace/image/color/unfused.hpp>
#include <millrace/simd/byte_marks.hpp>
#include <millrace/simd/byte_tables.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/points.hpp>
#include <millrace/simd/stream_copy.hpp>
#include <millrace/simd/words.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#define MILLRACE_KERNELS "unit/simd/words_checks.inc"
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS "unit/simd/points_checks.inc"
#include <millrace/simd/for_each_layer.inc>

namespace detail = millrace::detail;

namespace {

/// Returns the results of this processor's layer.
std::array<int, 8> differing_operations(millrace::rng& d) {
#if defined __x86_64__ || defined __aarch64__
  if (detail::cpu_has_word_layer()) return detail::word_layer::differing_operations(d);
#endif
  static_cast<void>(d);
  return {};
}

std::array<int, 2> differing_pixel_operations(millrace::rng& d) {
#if defined __x86_64__ || defined __aarch64__
  if (detail::cpu_has_word_layer()) return detail::word_layer::differing_pixel_operations(d);
#endif
  static_cast<void>(d);
  return {};
}

}  // namespace

TEST_CASE("each operation of a word layer equals a loop over elements") {
  millrace::rng d({.seed = 91});
  for (int i = 0; i < 500; ++i) {
    const auto [arithmetic, bytes, quads, halves, blocks, floats, any_of, byte_sums] = differing_operations(d);
    CHECK(arithmetic == 0);
    CHECK(bytes == 0);
    CHECK(quads == 0);
    CHECK(halves == 0);
    CHECK(blocks == 0);
    CHECK(floats == 0);
    CHECK(any_of == 0);
    CHECK(byte_sums == 0);
  }
}

TEST_CASE("each operation on pixels equals a loop over elements") {
  millrace::rng d({.seed = 92});
  for (int i = 0; i < 500; ++i) {
    const auto [words, pixels] = differing_pixel_operations(d);
    CHECK(words == 0);
    CHECK(pixels == 0);
  }
}

#if defined __x86_64__ || defined __aarch64__

TEST_CASE("each operation on bytes equals a loop over elements") {
  if (!detail::cpu_has_word_layer()) return;
  millrace::rng d({.seed = 93});
  for (int i = 0; i < 300; ++i) {
    const auto [bytes, numbers, pixels, tables] = detail::word_layer::unequal_results(d);
    CHECK(bytes == 0);
    CHECK(numbers == 0);
    CHECK(pixels == 0);
    CHECK(tables == 0);
  }
}

#endif

TEST_CASE("each operation on points equals a loop over elements") {
#if defined __x86_64__ || defined __aarch64__
  if (!detail::cpu_has_word_layer()) return;
  millrace::rng d({.seed = 93});
  for (int i = 0; i < 500; ++i) {
    const auto [doubles, quads, points, axes, neighbors, results] =
        detail::word_layer::differing_point_operations(d);
    CHECK(doubles == 0);
    CHECK(quads == 0);
    CHECK(points == 0);
    CHECK(axes == 0);
    CHECK(neighbors == 0);
    CHECK(results == 0);
  }
#endif
}

namespace {

int differing_numbers(const float* from) {
#if defined __x86_64__ || defined __aarch64__
  if (detail::cpu_has_word_layer()) return detail::word_layer::differing_numbers(from);
#endif
  static_cast<void>(from);
  return 0;
}

int differing_pixels(const std::uint8_t* pixels) {
#if defined __x86_64__ || defined __aarch64__
  if (detail::cpu_has_word_layer()) return detail::word_layer::differing_pixels(pixels);
#endif
  static_cast<void>(pixels);
  return 0;
}

}  // namespace

TEST_CASE("vectors of numbers are rounded, stored and loaded like single numbers") {
  millrace::rng d({.seed = 17});
  for (int round = 0; round < 20'000; ++round) {
    float numbers[64];
    for (float& n : numbers) {
      const auto bits = static_cast<std::uint32_t>(d.bits());
      // Half of the numbers have the magnitudes of f16, and many are halfway between two numbers of f16 or bf16.
      const std::uint32_t exponent = round % 2 == 0 ? bits >> 23 & 255 : 100 + static_cast<std::uint32_t>(d.below(45));
      n = std::bit_cast<float>((bits & (d.chance(0.3) ? 0x807ff000 : 0x807fffff)) | exponent << 23);
      if (!std::isfinite(n)) n = 0;
    }
    REQUIRE(differing_numbers(numbers) == 0);
  }
}

TEST_CASE("channels of pixels become numbers") {
  millrace::rng d({.seed = 18});
  for (int round = 0; round < 500; ++round) {
    std::uint8_t pixels[64];
    for (auto& p : pixels) p = static_cast<std::uint8_t>(d.below(256));
    REQUIRE(differing_pixels(pixels) == 0);
  }
}

TEST_CASE("the marked bytes of 16 and of 32 are found") {
  millrace::rng d({.seed = 7});
  for (int round = 0; round < 2'000; ++round) {
    std::array<std::uint8_t, 32> bytes;
    const auto different = 1 + d.below(40);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(0xff - d.below(different));
    const std::uint8_t value = round % 2 == 0 ? 0xff : 0xf3;
    const auto low = detail::equal_bytes(detail::load_16(bytes.data()), value);
    const auto high = detail::equal_bytes(detail::load_16(bytes.data() + 16), value);
    const auto at = [&](std::size_t from, std::size_t to) {
      return std::find(bytes.begin() + from, bytes.begin() + to, value) - bytes.begin() - from;
    };
    CHECK(detail::first_marked(low) == at(0, 16));
    CHECK(detail::first_marked(high) == at(16, 32));
    CHECK(detail::any_marked(low) == (at(0, 16) < 16));
    if (at(0, 32) < 32) CHECK(detail::first_marked(low, high) == at(0, 32));
    std::array<std::uint8_t, 16> stored;
    detail::store_16(stored.data(), low);
    for (std::size_t i = 0; i < 16; ++i) CHECK(stored[i] == (bytes[i] == value ? 0xff : 0));
  }
}

TEST_CASE("sixteen numbers are compared with one number") {
  millrace::rng d({.seed = 8});
  for (int round = 0; round < 500; ++round) {
    alignas(16) std::array<std::int32_t, 16> numbers;
    for (auto& n : numbers) n = static_cast<std::int32_t>(d.below(1 << 17)) - 100;
    numbers[3] = numbers[9];
    const auto above = detail::marks_above(numbers.data(), numbers[9]);
    for (std::size_t i = 0; i < 16; ++i) CHECK(above[i] == (numbers[i] > numbers[9] ? 0xff : 0));
  }
}

TEST_CASE("a large copy writes its bytes and no others, at each alignment") {
  constexpr std::size_t least = detail::least_streamed_bytes, around = 100;
  std::vector<std::byte> from(least + 400);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, least - 1, least, least + 1, least + 63, least + 200})
    for (std::size_t shift = 0; shift < 65; ++shift) {
      std::vector<std::byte> to(from.size() + 2 * around, std::byte{0xa5}), expected = to;
      const std::size_t at = around - shift, first = shift % 7;
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(at));
      detail::stream_copy(to.data() + at, from.data() + first, bytes);
      REQUIRE(to == expected);
    }
}
