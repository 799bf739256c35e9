#include <millrace/image/plane_resizer.hpp>

#include "resize_cases.hpp"

#include <doctest/doctest.h>

namespace {

using portable = mr::detail::basic_plane_resizer<mr::detail::portable_plane_kernels>;

bool same(const mr::image& a, const mr::image& b) {
  return a.shape() == b.shape() && std::equal(a.span().begin(), a.span().end(), b.span().begin());
}

}  // namespace

TEST_CASE("exact: planes become what decode, crop, resize and flip in real numbers give, within one level") {
  mr::detail::plane_resizer r;
  const auto d = slow::check_exact(r, 600);
  CHECK(d.max <= 1);
  CHECK(d.mean < 0.012);
}

TEST_CASE("fast: planes become what resized planes give in real numbers, within one level") {
  mr::detail::plane_resizer r;
  const auto d = slow::check_fast(r, 600);
  CHECK(d.max <= 1);
  CHECK(d.mean < 0.015);
}

TEST_CASE("portable and vector kernels give the same bits") {
  portable plain;
  mr::detail::plane_resizer chosen;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    for (const bool fast : {false, true}) {
      CAPTURE(i);
      CAPTURE(fast);
      REQUIRE(same(slow::render(plain, c, planes, fast), slow::render(chosen, c, planes, fast)));
    }
  }
}
