#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/plan/geometry.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/item/tensor/ragged.hpp>

#include "../slow_geometry.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace mr = millrace;

namespace {

mr::picture plain_picture(const std::vector<std::byte>& file) { return mr::jpeg(slow::view(file)); }

std::vector<std::byte> file_of(std::size_t width, std::size_t height) {
  return mr::encode_jpeg(mr::image({height, width, 3}));
}

}  // namespace

TEST_CASE("boxes and points are where fractions place them, after any chain of steps in any orientation") {
  mr::rng d({.seed = 31});
  std::size_t inside = 0, total = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t width = d.below(80) + 1, height = d.below(80) + 1;
    const int orientation = static_cast<int>(d.between(1, 8));
    const auto file = slow::with_orientation(file_of(width, height), orientation);
    slow::chained_picture p(mr::jpeg(slow::view(file), {.apply_orientation = true}), orientation);
    p.take_random_steps(d, 5, 100, i % 2 == 1);
    INFO(p.steps);
    CAPTURE(orientation);
    const mr::geometry g = p.picture.geometry();
    const auto& [across, down, transposed] = p.axes;
    const bool mirrored = ((across.step.over < 0) != (down.step.over < 0)) != transposed;
    CHECK(g.mirrored() == mirrored);
    std::vector<mr::box> boxes;
    std::vector<mr::point> points;
    for (int k = 0; k < 20; ++k) {
      const double x = d.uniform(0, static_cast<double>(width)), y = d.uniform(0, static_cast<double>(height));
      boxes.push_back({.left = x, .top = y, .right = x + d.uniform(0, 30), .bottom = y + d.uniform(0, 30)});
      points.push_back({.x = x, .y = y});
    }
    const auto moved = g.points(points);
    const auto by_centers = g.points(points, {.pixel_centers = true});
    const double right = static_cast<double>(g.width()), bottom = static_cast<double>(g.height());
    for (std::size_t k = 0; k < points.size(); ++k) {
      const auto [x, y] = points[k];
      const double x0 = across.edge(transposed ? y : x), y0 = down.edge(transposed ? x : y);
      REQUIRE(moved.points[k].x == doctest::Approx(x0).epsilon(1e-9));
      REQUIRE(moved.points[k].y == doctest::Approx(y0).epsilon(1e-9));
      REQUIRE(moved.inside[k] == (x0 >= 0 && x0 < right && y0 >= 0 && y0 < bottom));
      const double of_center = across.edge((transposed ? y : x) + 0.5) - 0.5;
      REQUIRE(by_centers.points[k].x == doctest::Approx(of_center).epsilon(1e-9));
    }
    const auto left = g.boxes(boxes, {.min_size = 2, .min_area = 6});
    std::size_t next = 0;
    for (std::size_t k = 0; k < boxes.size(); ++k) {
      const auto& b = boxes[k];
      double x[2] = {across.edge(transposed ? b.top : b.left), across.edge(transposed ? b.bottom : b.right)};
      double y[2] = {down.edge(transposed ? b.left : b.top), down.edge(transposed ? b.right : b.bottom)};
      if (x[0] > x[1]) std::swap(x[0], x[1]);
      if (y[0] > y[1]) std::swap(y[0], y[1]);
      for (double& edge : x) edge = std::clamp(edge, 0.0, right);
      for (double& edge : y) edge = std::clamp(edge, 0.0, bottom);
      const double w = x[1] - x[0], h = y[1] - y[0];
      if (w < 2 || h < 2 || w * h < 6) continue;
      REQUIRE(next < left.indices.size());
      REQUIRE(left.indices[next] == k);
      const double got[4] = {left.boxes[next].left, left.boxes[next].top, left.boxes[next].right,
                             left.boxes[next].bottom};
      const double expected[4] = {x[0], y[0], x[1], y[1]};
      for (int e = 0; e < 4; ++e) REQUIRE(got[e] == doctest::Approx(expected[e]).epsilon(1e-9));
      ++next;
    }
    REQUIRE(next == left.indices.size());
    inside += next;
    total += boxes.size();
  }
  CHECK(inside > total / 4);
  CHECK(inside < total * 3 / 4);
}

TEST_CASE("integer pixels stay integers: a crop subtracts, a flip mirrors, a resize by two doubles") {
  const auto file = file_of(100, 60);
  const auto g = plain_picture(file).crop({.left = 10, .top = 20, .width = 40, .height = 30}).resize(60, 80).flip()
                     .geometry();
  CHECK(g.mirrored());
  const std::vector<mr::box> boxes{{.left = 20, .top = 25, .right = 30, .bottom = 35},
                                   {.left = 0, .top = 0, .right = 100, .bottom = 60},
                                   {.left = 0, .top = 0, .right = 10, .bottom = 60}};
  const auto [moved, indexes] = g.boxes(boxes);
  CHECK(moved == std::vector<mr::box>{{.left = 40, .top = 10, .right = 60, .bottom = 30},
                                      {.left = 0, .top = 0, .right = 80, .bottom = 60}});
  CHECK(indexes == std::vector<std::size_t>{0, 1});
  const std::vector<mr::point> first{{.x = 10, .y = 20}};
  CHECK(g.points(first).points[0] == mr::point{.x = 80, .y = 0});
  CHECK(g.points(first).inside[0] == 0);   // on the right edge, beyond the last pixel
  // The centers of the first source pixel: 0.5 becomes 79 of edges, and 78.5 of centers.
  CHECK(g.points(first, {.pixel_centers = true}).points[0] == mr::point{.x = 78.5, .y = 0.5});
  CHECK(g.points(first, {.pixel_centers = true}).inside[0] == 1);
}

TEST_CASE("points outside of the image are clamped to it on request, and still count as outside") {
  const auto file = file_of(50, 40);
  const auto g = plain_picture(file).crop({.left = 10, .top = 10, .width = 20, .height = 10}).geometry();
  const std::vector<mr::point> points{{.x = 0, .y = 12}, {.x = 100, .y = 15.5}, {.x = 12, .y = -3},
                                      {.x = 29.75, .y = 99}};
  const auto free = g.points(points), clamped = g.points(points, {.clamp = true});
  CHECK(free.points == std::vector<mr::point>{{-10, 2}, {90, 5.5}, {2, -13}, {19.75, 89}});
  CHECK(clamped.points == std::vector<mr::point>{{0, 2}, {20, 5.5}, {2, 0}, {19.75, 10}});
  CHECK(clamped.inside == free.inside);
  CHECK(free.inside == std::vector<std::uint8_t>{0, 0, 0, 0});
  const auto centers = g.points(points, {.pixel_centers = true, .clamp = true});
  CHECK(centers.points == std::vector<mr::point>{{0, 2}, {19, 5.5}, {2, 0}, {19, 9}});
}

TEST_CASE("boxes without an area and with NaN are left out, and labels by the same indexes") {
  const auto file = file_of(50, 50);
  const auto g = plain_picture(file).geometry();
  const double none = std::numeric_limits<double>::quiet_NaN(), far = std::numeric_limits<double>::infinity();
  const std::vector<mr::box> boxes{{.left = 9, .top = 1, .right = 4, .bottom = 8},         // in reverse
                                   {.left = none, .top = 1, .right = 9, .bottom = 8},
                                   {.left = -far, .top = 1, .right = far, .bottom = 8},
                                   {.left = 3, .top = 3, .right = 3, .bottom = 8},
                                   {.left = 60, .top = 3, .right = 70, .bottom = 8},       // outside the image
                                   {.left = 1, .top = 1, .right = 2.5, .bottom = 2},
                                   {.left = 1, .top = 1, .right = 2.5, .bottom = 9}};
  CHECK(g.boxes(boxes, {.min_size = 0, .min_area = 0}).indices == std::vector<std::size_t>{2, 5, 6});
  CHECK(g.boxes(boxes).indices == std::vector<std::size_t>{2, 5, 6});
  CHECK(g.boxes(boxes, {.min_size = 1.5}).indices == std::vector<std::size_t>{2, 6});
  CHECK(g.boxes(boxes, {.min_area = 100}).indices == std::vector<std::size_t>{2});
  const auto left = g.boxes(boxes);
  CHECK(left.boxes[0] == mr::box{.left = 0, .top = 1, .right = 50, .bottom = 8});
  CHECK(left.of(std::vector<std::int32_t>{10, 11, 12, 13, 14, 15, 16}) == std::vector<std::int32_t>{12, 15, 16});
  CHECK_THROWS_WITH_AS(static_cast<void>(left.of(std::vector<int>{1, 2, 3, 4, 5, 6})),
                       doctest::Contains("box 6 has no value: got 6 values"), mr::setup_error);
  const mr::ragged<float, 2> column(left.rows<float>(), {.max_length = 8});
  CHECK(column.length() == 3);
  CHECK(column.elements()[6] == 2.5F);
  for (const mr::box_options& bad : {mr::box_options{.min_size = -1}, mr::box_options{.min_area = none}})
    CHECK_THROWS_WITH_AS(static_cast<void>(g.boxes(boxes, bad)), doctest::Contains("expected 0 or more"),
                         mr::setup_error);
}

TEST_CASE("a picture of its own coordinates, rendered, agrees with boxes and points within half a pixel") {
  constexpr std::size_t width = 50, height = 42;
  mr::image coordinates({height, width, 3});
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      coordinates(y, x, 0) = static_cast<std::uint8_t>(5 * x + 2);
      coordinates(y, x, 1) = static_cast<std::uint8_t>(5 * y + 2);
      coordinates(y, x, 2) = 128;
    }
  const auto plain = mr::encode_jpeg(coordinates, {.quality = 100, .sampling = mr::chroma_sampling::yuv444});
  mr::rng d({.seed = 32});
  std::size_t compared = 0;
  for (int i = 0; i < 120; ++i) {
    const int orientation = i % 8 + 1;
    const auto file = slow::with_orientation(plain, orientation);
    slow::chained_picture p(mr::jpeg(slow::view(file), {.apply_orientation = true}), orientation);
    p.take_random_steps(d, 4, 90);
    INFO(p.steps);
    CAPTURE(orientation);
    const mr::geometry g = p.picture.geometry();
    const auto pixels = p.picture.pixels();
    // The reach of the filter, in pixels of the source: points that are nearer to the crop's edge are pulled inwards.
    const auto reach = [](const slow::picture_axis& a) { return std::max(std::abs(a.step.real()), 1.0); };
    const auto& [across, down, transposed] = p.axes;
    for (std::size_t y = 0; y < g.height(); ++y)
      for (std::size_t x = 0; x < g.width(); ++x) {
        const double x0 = static_cast<double>(x) + 0.5, y0 = static_cast<double>(y) + 0.5;
        const double from_x = std::abs(across.step.real()) * std::min(x0, static_cast<double>(g.width()) - x0);
        const double from_y = std::abs(down.step.real()) * std::min(y0, static_cast<double>(g.height()) - y0);
        if (from_x < reach(across) + 0.5 || from_y < reach(down) + 0.5) continue;
        const mr::point stored{.x = (pixels(y, x, 0) + 0.5) / 5, .y = (pixels(y, x, 1) + 0.5) / 5};
        const mr::box around{.left = stored.x - 1, .top = stored.y - 1, .right = stored.x + 1, .bottom = stored.y + 1};
        const auto point = g.points({&stored, 1}).points[0];
        // Half a pixel of the source, or of the result if that is larger.
        const double limit_x = 0.5 * std::max(1.0, 1 / std::abs(across.step.real()));
        const double limit_y = 0.5 * std::max(1.0, 1 / std::abs(down.step.real()));
        REQUIRE(std::abs(point.x - x0) <= limit_x);
        REQUIRE(std::abs(point.y - y0) <= limit_y);
        const auto box = g.boxes({&around, 1}, {.min_size = 0, .min_area = 0}).boxes.at(0);
        const bool is_inside = box.left > 0 && box.top > 0 && box.right < static_cast<double>(g.width()) &&
                           box.bottom < static_cast<double>(g.height());
        if (is_inside) REQUIRE(std::abs((box.left + box.right) / 2 - x0) <= limit_x);
        if (is_inside) REQUIRE(std::abs((box.top + box.bottom) / 2 - y0) <= limit_y);
        ++compared;
      }
  }
  CHECK(compared > 20'000);
}

TEST_CASE("random crops have the area and the ratio of the published rule") {
  // The rule in floating point, with another generator's numbers.
  struct totals {
    double area = 0, area_square = 0, log_ratio = 0, log_ratio_square = 0, left = 0, top = 0;
    void add(double a, double r, double l, double t) {
      area += a, area_square += a * a, log_ratio += r, log_ratio_square += r * r, left += l, top += t;
    }
  };
  constexpr int rounds = 40'000;
  for (const auto& [width, height] :
       {std::pair{500, 375}, std::pair{375, 500}, std::pair{64, 64}, std::pair{800, 100}}) {
    const double w0 = width, h0 = height;
    totals ours, real;
    mr::rng d({.seed = 2}), e({.seed = 3});
    for (int i = 0; i < rounds; ++i) {
      const mr::picture_size size{.width = static_cast<std::size_t>(width), .height = static_cast<std::size_t>(height)};
      const auto box = mr::detail::random_crop_box(size, d);
      REQUIRE((box.width > 0 && box.height > 0));
      REQUIRE(box.left + box.width <= static_cast<std::size_t>(width));
      REQUIRE(box.top + box.height <= static_cast<std::size_t>(height));
      const auto w = static_cast<double>(box.width), h = static_cast<double>(box.height);
      ours.add(w * h / (w0 * h0), std::log(w / h), static_cast<double>(box.left) / w0,
               static_cast<double>(box.top) / h0);
      double cw = 0, ch = 0, cl = 0, ct = 0;
      bool fits = false;
      for (int attempt = 0; attempt < 10 && !fits; ++attempt) {
        const double area = w0 * h0 * e.uniform(0.08, 1),
                     ratio = std::exp(e.uniform(std::log(3. / 4), std::log(4. / 3)));
        cw = std::round(std::sqrt(area * ratio));
        ch = std::round(std::sqrt(area / ratio));
        if (cw < 1 || ch < 1 || cw > w0 || ch > h0) continue;
        ct = std::floor(e.uniform() * (h0 - ch + 1));
        cl = std::floor(e.uniform() * (w0 - cw + 1));
        fits = true;
      }
      if (!fits) {
        cw = w0 / h0 > 4. / 3 ? std::round(h0 * 4 / 3) : w0;
        ch = w0 / h0 < 3. / 4 ? std::round(w0 * 4 / 3) : h0;
        cl = std::floor((w0 - cw) / 2);
        ct = std::floor((h0 - ch) / 2);
      }
      real.add(cw * ch / (w0 * h0), std::log(cw / ch), cl / w0, ct / h0);
    }
    const auto near = [](double a, double b, double tolerance) {
      return std::abs(a / rounds - b / rounds) < tolerance;
    };
    CHECK(near(ours.area, real.area, 0.006));
    CHECK(near(ours.area_square, real.area_square, 0.006));
    CHECK(near(ours.log_ratio, real.log_ratio, 0.006));
    CHECK(near(ours.log_ratio_square, real.log_ratio_square, 0.002));
    CHECK(near(ours.left, real.left, 0.005));
    CHECK(near(ours.top, real.top, 0.005));
  }
}

TEST_CASE("if no box fits, the largest central one of an allowed ratio is used") {
  mr::rng d({.seed = 4});
  CHECK(mr::detail::random_crop_box({.width = 1000, .height = 10}, d, {.scale_min = 1}) ==
        mr::crop_box{.left = 493, .top = 0, .width = 13, .height = 10});
  CHECK(mr::detail::random_crop_box({.width = 10, .height = 1000}, d, {.scale_min = 1}) ==
        mr::crop_box{.left = 0, .top = 493, .width = 10, .height = 13});
  CHECK(mr::detail::random_crop_box({.width = 1, .height = 1}, d) ==
        mr::crop_box{.left = 0, .top = 0, .width = 1, .height = 1});
  CHECK(mr::detail::random_crop_box({.width = 65535, .height = 1}, d).height == 1);
}

TEST_CASE("the crops of a key are frozen, on every compiler and flag") {
  const std::array<mr::picture_size, 5> sizes = {{{500, 375}, {375, 500}, {224, 224}, {3000, 20}, {65535, 65535}}};
  // From an independent implementation of the rule (Python, integers for the draws, floating point for the rest).
  const mr::crop_box expected[] = {
      {81, 2, 329, 301}, {68, 16, 331, 278}, {302, 143, 151, 145},
      {22, 5, 329, 301}, {18, 36, 331, 278}, {194, 220, 151, 145},
      {26, 1, 170, 156}, {21, 13, 171, 144}, {127, 92, 78, 75},
      {1486, 0, 27, 20}, {1486, 0, 27, 20}, {1486, 0, 27, 20},
      {7417, 575, 49850, 45624}, {6252, 3874, 50115, 42144}, {36886, 27020, 22855, 21927}};
  std::size_t i = 0;
  for (const auto& size : sizes)
    for (std::uint64_t sample = 0; sample < 3; ++sample) {
      mr::rng d({.seed = 9, .sample = sample});
      const auto box = mr::detail::random_crop_box(size, d);
      CAPTURE(i);
      CHECK(box == expected[i++]);
    }
}

TEST_CASE("impossible options are refused") {
  mr::rng d({.seed = 5});
  for (const mr::random_crop_options& o : {mr::random_crop_options{.scale_min = 0},
                                           {.scale_min = 0.9, .scale_max = 0.5},
                                           {.scale_max = 1.5},
                                           {.ratio_min = 0},
                                           {.ratio_min = 2, .ratio_max = 1},
                                           {.ratio_max = 1e9},
                                           {.scale_min = std::nan("")}})
    CHECK_THROWS_AS((void)mr::detail::random_crop_box({.width = 5, .height = 5}, d, o), mr::setup_error);
}
