#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/baseline/dct_kernels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace mr = millrace;
namespace detail = millrace::detail;

namespace {

using inverse_dct = bool (*)(std::int16_t*, const detail::dequantiser&, detail::dct_target) noexcept;

struct random_pair {
  alignas(32) std::array<std::int16_t, detail::pair_coefficients> coefficients{};
  detail::dequantiser q;

  explicit random_pair(mr::rng& d) {
    std::array<std::uint8_t, 64> zigzag;
    const std::int64_t coarsest = std::int64_t{1} << d.below(9);
    for (auto& step : zigzag) step = static_cast<std::uint8_t>(std::min<std::int64_t>(255, d.between(1, coarsest)));
    q = detail::dequantiser(zigzag.data());
    const double density = d.uniform();
    const std::int64_t largest = std::min<std::int64_t>(1'023, std::int64_t{1} << d.below(11));
    for (std::size_t i = 0; i < 128; ++i)
      if (d.chance(density)) coefficients[i] = static_cast<std::int16_t>(d.between(-largest, largest));
    for (const std::size_t dc : {std::size_t{0}, detail::right_block})
      coefficients[dc] = static_cast<std::int16_t>(d.between(-q.largest_dc, q.largest_dc));
  }
};

/// Runs `f` on a copy; a tame one has to leave zeros.
bool run(inverse_dct f, const random_pair& input, detail::dct_target to) {
  random_pair p = input;
  const bool tame = f(p.coefficients.data(), p.q, to);
  if (tame) CHECK(std::all_of(p.coefficients.begin(), p.coefficients.begin() + 128, [](int c) { return c == 0; }));
  return tame;
}

/// T.81 A.3.3 in real numbers.
double sample_by_definition(const random_pair& p, std::size_t block, std::size_t x, std::size_t y) {
  const double pi = std::acos(-1.0);
  double sum = 0;
  for (std::size_t v = 0; v < 8; ++v)
    for (std::size_t u = 0; u < 8; ++u) {
      const std::size_t at = 16 * v + block * detail::right_block + u;
      const double scale = (u == 0 ? std::sqrt(0.5) : 1) * (v == 0 ? std::sqrt(0.5) : 1);
      sum += scale * p.coefficients[at] * p.q.step[at] * std::cos((2 * static_cast<double>(x) + 1) *
             static_cast<double>(u) * pi / 16) * std::cos((2 * static_cast<double>(y) + 1) * static_cast<double>(v) *
             pi / 16);
    }
  return sum / 4 + 128;
}

}  // namespace

TEST_CASE("samples equal the definition, rounded") {
  mr::rng d({.seed = 31});
  std::array<std::uint8_t, 128> samples{};
  std::size_t tame = 0;
  for (int i = 0; i < 300; ++i) {
    const random_pair p(d);
    if (!run(detail::inverse_dct_pair, p, {samples.data(), 16})) continue;
    ++tame;
    double largest = 0;
    for (std::size_t y = 0; y < 8; ++y)
      for (std::size_t x = 0; x < 16; ++x) {
        const double expected = std::clamp(sample_by_definition(p, x / 8, x % 8, y), 0.0, 255.0);
        largest = std::max(largest, std::abs(expected - samples[16 * y + x]));
      }
    CHECK(largest < 0.8);   // half a level for rounding, the rest for 13 bits of fraction
  }
  CHECK(tame > 50);
}

TEST_CASE("every processor's code computes the same samples and the same answer for wild input") {
  std::vector<inverse_dct> vector_code{detail::dct_kernels::best().pair[3]};
#ifdef __x86_64__
  if (detail::cpu_has_word_layer()) vector_code.push_back(detail::avx2::dct_to_eight);
#endif
  mr::rng d({.seed = 32});
  std::array<std::uint8_t, 128> plain{}, fast{};
  std::size_t tame = 0, wild = 0;
  for (int i = 0; i < 20'000; ++i) {
    const random_pair p(d);
    const bool expected = run(detail::inverse_dct_pair, p, {plain.data(), 16});
    for (const inverse_dct pair : vector_code) {
      fast.fill(0);
      CHECK(run(pair, p, {fast.data(), 16}) == expected);
      if (expected) CHECK(plain == fast);
    }
    ++(expected ? tame : wild);
  }
  CHECK(tame > 2'000);
  CHECK(wild > 2'000);
}

TEST_CASE("four blocks at once equal two pairs") {
  const auto quad = detail::dct_kernels::best().quad;
  if (quad == nullptr) return;
  constexpr std::size_t stride = 35;   // and three bytes after each row that stay
  mr::rng d({.seed = 35});
  std::size_t tame_quads = 0, wild_quads = 0;
  for (int i = 0; i < 20'000; ++i) {
    const random_pair first(d);
    random_pair second(d);
    second.q = first.q;
    for (const std::size_t dc : {std::size_t{0}, detail::right_block})
      second.coefficients[dc] = static_cast<std::int16_t>(d.between(-first.q.largest_dc, first.q.largest_dc));
    alignas(32) std::array<std::int16_t, 2 * detail::pair_coefficients> both{};
    std::copy(first.coefficients.begin(), first.coefficients.end(), both.begin());
    std::copy(second.coefficients.begin(), second.coefficients.end(), both.begin() + detail::pair_coefficients);
    std::array<std::uint8_t, 8 * stride> one_by_one{}, at_once{};
    const bool tame = run(detail::inverse_dct_pair, first, {one_by_one.data(), stride}) &&
                      run(detail::inverse_dct_pair, second, {one_by_one.data() + 16, stride});
    CHECK(quad(both.data(), first.q, {at_once.data(), stride}) == tame);
    ++(tame ? tame_quads : wild_quads);
    if (!tame) continue;
    CHECK(std::all_of(both.begin(), both.end(), [](int c) { return c == 0; }));
    CHECK(at_once == one_by_one);
  }
  CHECK(tame_quads > 100);
  CHECK(wild_quads > 100);
}

TEST_CASE("black and white blocks of the coarsest quantizers are tame, and slightly larger ones are not") {
  std::array<std::uint8_t, 64> zigzag;
  zigzag.fill(255);
  const detail::dequantiser q(zigzag.data());
  CHECK(q.may_overflow);
  CHECK(q.largest_dc >= 4);   // 4 * 255 is the nearest to 8 * 128
  alignas(32) std::array<std::int16_t, detail::pair_coefficients> c{};
  std::array<std::uint8_t, 128> samples{};
  c[0] = 4;
  c[8] = -4;
  CHECK(detail::inverse_dct_pair(c.data(), q, {samples.data(), 16}));
  CHECK(samples[0] == 255);
  CHECK(samples[8] == 1);
  c[0] = 4;
  c[8] = -4;
  c[1] = 1'000;   // times 255 is 65536 * 3 + 58392: in 16 bits it would look small
  CHECK(!detail::inverse_dct_pair(c.data(), q, {samples.data(), 16}));
}

namespace {

struct reduced_kind {
  std::size_t size;   // samples on a side of a block
  inverse_dct portable;
};
constexpr reduced_kind reduced_kinds[] = {
    {4, detail::reduced_dct::four}, {2, detail::reduced_dct::two}, {1, detail::reduced_dct::one}};

}  // namespace

TEST_CASE("samples of a smaller size are the means of those by definition") {
  mr::rng d({.seed = 33});
  for (const auto& kind : reduced_kinds) {
    const std::size_t size = kind.size, step = 8 / size;
    std::array<std::uint8_t, 32> samples{};
    int tame = 0;
    for (int i = 0; i < 200; ++i) {
      const random_pair p(d);
      if (!run(kind.portable, p, {samples.data(), 2 * size})) continue;
      ++tame;
      double largest = 0;
      for (std::size_t y = 0; y < size; ++y)
        for (std::size_t x = 0; x < 2 * size; ++x) {
          double mean = 0;
          for (std::size_t v = 0; v < step; ++v)
            for (std::size_t u = 0; u < step; ++u)
              mean += sample_by_definition(p, x / size, x % size * step + u, y * step + v) /
                      static_cast<double>(step * step);
          largest = std::max(largest, std::abs(std::clamp(mean, 0.0, 255.0) - samples[2 * size * y + x]));
        }
      CHECK(largest < 0.8);
    }
    CHECK(tame > 30);
  }
}

TEST_CASE("every processor's code computes the same samples of a smaller size, and writes no others") {
  const detail::dct_kernels best = detail::dct_kernels::best();
  mr::rng d({.seed = 34});
  for (const auto& kind : reduced_kinds) {
    if (kind.size == 1) continue;
    const inverse_dct by_vectors = best.pair[kind.size == 4 ? 2 : 1];
    const std::size_t stride = 2 * kind.size + 3;
    int tame = 0, wild = 0;
    for (int i = 0; i < 20'000; ++i) {
      const random_pair p(d);
      std::array<std::uint8_t, 44> plain{}, fast{};
      const bool expected = run(kind.portable, p, {plain.data(), stride});
      CHECK(run(by_vectors, p, {fast.data(), stride}) == expected);
      if (expected) CHECK(plain == fast);
      ++(expected ? tame : wild);
    }
    CHECK(tame > 2'000);
    CHECK(wild > 2'000);
  }
}
