#include <millrace/image/color/vector_kernels.hpp>
#include <millrace/simd/cpu_features.hpp>

#include "slow_colors.hpp"

#include <doctest/doctest.h>

namespace {

namespace mr = millrace;
using mr::detail::pending_tables;

/// Calls check(kernels) with each build that this CPU runs.
template <class Check>
void for_each_build(const Check& check) {
  check(mr::detail::portable_pixels{});
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check(mr::detail::word_layer::pixels{});
#endif
}

pending_tables all(const mr::detail::byte_table& table) {
  pending_tables tables;
  tables.then(table);
  return tables;
}

/// Compares all ways to apply tables with `expected`.
void check_tables(const slow::picture& from, const pending_tables& tables, const slow::picture& expected) {
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
      pending_tables tables;
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
  for (std::size_t c = 0; c < 3; ++c) CHECK(mr::detail::counts_after(before[c], table) == after[c]);
}

TEST_CASE("tables one after the other are one table") {
  for (const slow::picture& from : slow::pictures()) {
    pending_tables tables;
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
