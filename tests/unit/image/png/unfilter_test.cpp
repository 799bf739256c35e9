#include <millrace/base/random.hpp>
#include <millrace/image/png/unfilter.hpp>

#include "../../../thorough.hpp"

#include <array>
#include <cstdlib>
#include <vector>

#include <doctest/doctest.h>

namespace mr = millrace;
using mr::detail::filtered_row;

namespace {

constexpr std::array<std::size_t, 6> pixel_sizes = {1, 2, 3, 4, 6, 8};
constexpr std::size_t slack = mr::detail::unfilter::slack_bytes;

/// By the definition of the format.
int predicted(unsigned filter, int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  const int all[] = {0, a, b, (a + b) / 2, pa <= pb && pa <= pc ? a : pb <= pc ? b : c};
  return all[filter];
}

std::vector<std::uint8_t> undone(unsigned filter, std::size_t pixel, const std::vector<std::uint8_t>& from,
                                 const std::vector<std::uint8_t>& above, std::size_t bytes) {
  std::vector<std::uint8_t> row(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    row[i] = static_cast<std::uint8_t>(from[i] + predicted(filter, i >= pixel ? row[i - pixel] : 0, above[i],
                                                            i >= pixel ? above[i - pixel] : 0));
  return row;
}

std::vector<std::uint8_t> row(mr::rng& d, std::size_t bytes) {
  std::vector<std::uint8_t> row(bytes + slack);
  const bool small = d.chance(0.5);
  for (auto& b : row) b = static_cast<std::uint8_t>(small ? d.below(5) : d.below(256));
  return row;
}

}  // namespace

TEST_CASE("filters are undone as in the format, with vectors and without") {
  mr::rng d({.seed = 1});
  for (const std::size_t pixel : pixel_sizes)
    for (std::size_t width = 1; width <= 70; width += stride(3))
      for (unsigned filter = 0; filter < mr::detail::unfilter::filters; ++filter) {
        const std::size_t bytes = pixel * width;
        const auto from = row(d, bytes), above = row(d, bytes);
        const auto expected = undone(filter, pixel, from, above, bytes);
        for (const bool vectors : {true, false}) {
          if (vectors && !mr::detail::cpu_has_word_layer()) continue;
          std::vector<std::uint8_t> to(bytes + slack);
          mr::detail::unfilter(pixel, vectors)(filter, {.from = from.data(), .above = above.data(), .to = to.data(),
                                                        .bytes = bytes});
          to.resize(bytes);
          CAPTURE(pixel);
          CAPTURE(width);
          CAPTURE(filter);
          CAPTURE(vectors);
          REQUIRE(to == expected);
        }
      }
}

TEST_CASE("several rows of Paeth at once equal those one after the other") {
  mr::rng d({.seed = 2});
  for (const std::size_t pixel : pixel_sizes)
    for (std::size_t width = 1; width <= 40; width += stride(3))
      for (std::size_t count = 1; count <= mr::detail::unfilter::max_rows; ++count) {
        const std::size_t bytes = pixel * width;
        const auto first = row(d, bytes);
        std::vector<std::vector<std::uint8_t>> from, expected;
        for (std::size_t k = 0; k < count; ++k) {
          from.push_back(row(d, bytes));
          expected.push_back(undone(4, pixel, from[k], k == 0 ? first : expected[k - 1], bytes));
        }
        for (const bool vectors : {true, false}) {
          if (vectors && !mr::detail::cpu_has_word_layer()) continue;
          std::vector<std::vector<std::uint8_t>> to(count, std::vector<std::uint8_t>(bytes + slack));
          std::vector<filtered_row> rows;
          for (std::size_t k = 0; k < count; ++k)
            rows.push_back({.from = from[k].data(), .above = k == 0 ? first.data() : to[k - 1].data(),
                            .to = to[k].data(), .bytes = bytes});
          mr::detail::unfilter(pixel, vectors).paeth_rows(rows);
          for (auto& row : to) row.resize(bytes);
          CAPTURE(pixel);
          CAPTURE(width);
          CAPTURE(count);
          REQUIRE(to == expected);
        }
      }
}

TEST_CASE("Paeth chooses by the rule for all neighbors") {
  // Eight triples at a time: a pixel that sets `left`, then one that shows the prediction.
  constexpr std::size_t pixel = 8;
  std::vector<std::uint8_t> from(2 * pixel + slack), above(2 * pixel + slack), to(2 * pixel + slack);
  std::size_t wrong = 0;
  for (const bool vectors : {true, false}) {
    if (vectors && !mr::detail::cpu_has_word_layer()) continue;
    const mr::detail::unfilter undo(pixel, vectors);
    for (unsigned left = 0; left < 256; left += static_cast<unsigned>(stride(5)))
      for (unsigned corner = 0; corner < 256; ++corner)
        for (unsigned up = 0; up < 256; up += pixel) {
          for (unsigned k = 0; k < pixel; ++k) {
            above[k] = static_cast<std::uint8_t>(corner);
            from[k] = static_cast<std::uint8_t>(left - corner);   // Paeth of the first pixel is the one above
            above[pixel + k] = static_cast<std::uint8_t>(up + k);
          }
          undo(4, {.from = from.data(), .above = above.data(), .to = to.data(), .bytes = 2 * pixel});
          for (unsigned k = 0; k < pixel; ++k) {
            const int a = static_cast<int>(left), b = static_cast<int>(up + k), c = static_cast<int>(corner);
            if (to[pixel + k] != predicted(4, a, b, c)) ++wrong;
          }
        }
  }
  CHECK(wrong == 0);
}
