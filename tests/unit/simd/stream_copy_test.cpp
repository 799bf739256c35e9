#include <millrace/simd/stream_copy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace detail = millrace::detail;

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
