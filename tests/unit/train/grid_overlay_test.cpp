#include <millrace/base/random.hpp>
#include <millrace/train/picture_grid.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace mr = millrace;

namespace {

template <class T, std::size_t N>
mr::tensor<T, N> random_numbers(std::array<std::size_t, N> shape, std::uint64_t below) {
  mr::tensor<T, N> result(shape);
  mr::rng random({.seed = 5});
  for (auto& v : result.span()) v = static_cast<T>(random.below(below));
  return result;
}

template <class T, std::size_t N>
mr::tensor_view<const T, N> named(const mr::tensor<T, N>& t, const char* name = "example::column") {
  return {.data = t.data(), .shape = t.shape(), .name = name};
}

using rgb = std::array<int, 3>;

rgb pixel(const mr::image& grid, std::size_t y, std::size_t x) {
  return {grid(y, x, 0), grid(y, x, 1), grid(y, x, 2)};
}

constexpr rgb outline{255, 230, 0};

/// A batch that reports its columns as stored on a GPU.
struct far_batch {
  mr::tensor<std::uint8_t, 4> pixels;
  mr::tensor<std::uint8_t, 3> classes;
  mr::tensor<float, 3> edges;
  mr::tensor<std::int32_t, 1> counts;

  template <class T, std::size_t N>
  static mr::tensor_view<const T, N> far(const mr::tensor<T, N>& t) {
    auto view = named(t);
    view.memory = mr::memory_kind::device;
    return view;
  }
  auto columns() const { return std::tuple(far(pixels), far(classes)); }
  template <class T, std::size_t N>
  auto to_host(const mr::tensor_view<const T, N>& view) const {
    return mr::tensor<T, N>(view.shape, std::vector<T>(view.data, view.data + view.size()));
  }
};

}  // namespace

TEST_CASE("classes have the colors of Pascal VOC") {
  const auto is = [](std::uint8_t label, std::array<std::uint8_t, 3> color) {
    CHECK(mr::detail::class_color(label) == color);
  };
  is(0, {0, 0, 0});
  is(1, {128, 0, 0});
  is(2, {0, 128, 0});
  is(3, {128, 128, 0});
  is(8, {64, 0, 0});
  is(15, {192, 128, 128});
  is(20, {0, 64, 128});
  is(255, {224, 224, 192});
}

TEST_CASE("masks are drawn over their images, which show through; the ground stays unchanged") {
  for (const std::size_t channels : {1, 3}) {
    const auto p = random_numbers<std::uint8_t, 4>({5, 4, 6, channels}, 256);
    const auto masks = random_numbers<std::uint8_t, 3>({5, 4, 6}, 3);
    const mr::image plain = mr::make_grid(named(p), {.most = 4, .gap = 1});
    const mr::image grid = mr::make_grid(named(p), {.most = 4, .gap = 1, .masks = named(masks)});
    REQUIRE(grid.shape() == std::array<std::size_t, 3>{9, 13, 3});
    for (std::size_t y = 0; y < 9; ++y)
      for (std::size_t x = 0; x < 13; ++x) {
        const std::size_t n = y / 5 * 2 + x / 7;
        const bool on_picture = y % 5 < 4 && x % 7 < 6;
        const int label = on_picture ? masks(n, y % 5, x % 7) : 0;
        const rgb color = label == 1 ? rgb{128, 0, 0} : rgb{0, 128, 0};
        for (std::size_t c = 0; c < 3; ++c) {
          const int before = plain(y, x, channels == 3 ? c : 0);
          REQUIRE(int{grid(y, x, c)} == (label == 0 ? before : (before + color[c] + 1) / 2));
        }
      }
  }
}

TEST_CASE("boxes are outlines inside their edges, cut where the image ends") {
  const mr::tensor<std::uint8_t, 4> p({2, 8, 10, 3});
  mr::tensor<float, 3> edges({2, 3, 4});
  const float nan = std::nanf(""), huge = std::numeric_limits<float>::infinity();
  constexpr float first[] = {1, 2, 5, 6,  0, 0, 4, 4,  6, 6, 6, 6};
  const float second[] = {-5, -5, 3.5F, 2.25F,  -huge, 5, huge, 7,  0, 0, 10, 8};
  std::ranges::copy(first, edges.data());
  std::ranges::copy(second, edges.data() + 12);
  edges(0, 1, 0) = nan;
  mr::tensor<std::int32_t, 1> counts({2});
  counts[0] = 3, counts[1] = 2;   // its third is padding
  const mr::padded_view<const float, 3> boxes{.values = named(edges), .lengths = counts.view()};
  const mr::image grid = mr::make_grid(named(p), {.columns = 2, .boxes = boxes});
  const auto is_outline = [&](std::size_t first, std::size_t y, std::size_t x) {
    if (pixel(grid, y, first + x) == outline) return true;
    CHECK(pixel(grid, y, first + x) == rgb{});
    return false;
  };
  for (std::size_t y = 0; y < 8; ++y)
    for (std::size_t x = 0; x < 10; ++x) {
      const bool inside = x >= 1 && x < 5 && y >= 2 && y < 6;
      const bool inner = x >= 2 && x < 4 && y >= 3 && y < 5;
      CHECK(is_outline(0, y, x) == (inside && !inner));
      const bool corner = (y == 2 && x < 4) || (x == 3 && y < 3), band = y == 5 || y == 6;
      CHECK(is_outline(12, y, x) == (corner || band));
    }
}

TEST_CASE("a column of one box for each image is one of boxes") {
  const mr::tensor<std::uint8_t, 4> p({3, 6, 6, 1});
  mr::tensor<float, 2> edges({3, 4});
  for (std::size_t i = 0; i < 3; ++i) edges(i, 0) = edges(i, 1) = static_cast<float>(i), edges(i, 2) = edges(i, 3) = 5;
  const mr::image grid = mr::make_grid(named(p), {.columns = 3, .gap = 0, .boxes = edges.view()});
  REQUIRE(grid.shape() == std::array<std::size_t, 3>{6, 18, 3});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t x = 0; x < 6; ++x) CHECK((pixel(grid, x, 6 * i + x) == outline) == (x == i || x == 4));
}

TEST_CASE("overlays of images may be on a GPU as well") {
  const far_batch b{.pixels = random_numbers<std::uint8_t, 4>({3, 4, 5, 3}, 256),
                    .classes = random_numbers<std::uint8_t, 3>({3, 4, 5}, 4),
                    .edges = random_numbers<float, 3>({3, 2, 4}, 5),
                    .counts = random_numbers<std::int32_t, 1>({3}, 3)};
  mr::grid_boxes near_boxes, far_boxes;
  near_boxes.edges = named(b.edges), near_boxes.counts = named(b.counts);
  far_boxes.edges = far_batch::far(b.edges), far_boxes.counts = far_batch::far(b.counts);
  const mr::image expected = mr::make_grid(named(b.pixels), {.masks = named(b.classes), .boxes = near_boxes});
  const mr::image grid = mr::make_grid(b, {.masks = far_batch::far(b.classes), .boxes = far_boxes});
  CHECK(std::ranges::equal(grid.span(), expected.span()));
  CHECK_FALSE(std::ranges::equal(grid.span(), mr::make_grid(named(b.pixels)).span()));
}

TEST_CASE("masks and boxes of other images are refused by name") {
  const mr::tensor<std::uint8_t, 4> p({2, 4, 5, 3});
  const mr::tensor<std::uint8_t, 3> turned({2, 5, 4}), fewer({1, 4, 5});
  for (const auto& masks : {named(turned, "example::mask"), named(fewer, "example::mask")})
    CHECK_THROWS_WITH_AS(mr::make_grid(named(p), {.masks = masks}), doctest::Contains("'example::mask'"),
                         mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::make_grid(named(p), {.masks = named(turned)}), doctest::Contains("expected [2, 4, 5]"),
                       mr::setup_error);
  const mr::tensor<float, 2> points({2, 2}), more({3, 4});
  for (const auto& boxes : {named(points, "example::boxes"), named(more, "example::boxes")})
    CHECK_THROWS_WITH_AS(mr::make_grid(named(p), {.boxes = boxes}), doctest::Contains("'example::boxes'"),
                         mr::setup_error);
}
