#include <millrace/base/random.hpp>
#include <millrace/device/normalize.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/train/picture_grid.hpp>

#include "../../temporary_folder.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>

namespace mr = millrace;

namespace {

template <class T, std::size_t N>
mr::tensor_view<const T, N> view_of(const mr::tensor<T, N>& t) {
  return {.data = t.data(), .shape = t.shape(), .name = "example::pixels"};
}

mr::tensor<std::uint8_t, 4> noise(std::array<std::size_t, 4> shape) {
  mr::tensor<std::uint8_t, 4> result(shape);
  mr::rng random({.seed = 5});
  for (auto& v : result.span()) v = static_cast<std::uint8_t>(random.below(256));
  return result;
}

/// The image and the pixel, computed for each pixel of the grid.
mr::image slow_grid(const mr::tensor<std::uint8_t, 4>& p, std::size_t count, std::size_t columns, std::size_t gap) {
  const auto [rows, height, width, channels] = p.shape();
  const std::size_t lines = (count + columns - 1) / columns;
  mr::image grid({lines * height + (lines - 1) * gap, columns * width + (columns - 1) * gap, channels});
  for (std::size_t y = 0; y < grid.shape()[0]; ++y)
    for (std::size_t x = 0; x < grid.shape()[1]; ++x)
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t line = y / (height + gap), column = x / (width + gap), n = line * columns + column;
        const std::size_t inner_y = y % (height + gap), inner_x = x % (width + gap);
        const bool on_picture = n < count && inner_y < height && inner_x < width;
        grid(y, x, c) = on_picture ? p(n, inner_y, inner_x, c) : 48;
      }
  return grid;
}

bool same(const mr::image& a, const mr::image& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.span(), b.span());
}

int furthest(const mr::image& a, const mr::image& b) {
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a.span()[i] - b.span()[i]));
  return most;
}

/// The interface of a batch to its readers; this one reports its location as a GPU.
struct far_batch {
  mr::tensor<std::uint8_t, 4> pixels;
  mr::tensor<float, 2> boxes;

  auto columns() const {
    auto view = view_of(pixels);
    view.memory = mr::memory_kind::device;
    return std::tuple(view_of(boxes), view);
  }
  template <class T, std::size_t N>
  auto to_host(const mr::tensor_view<const T, N>& view) const {
    return mr::tensor<T, N>(view.shape, std::vector<T>(view.data, view.data + view.size()));
  }
};

std::vector<unsigned> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<unsigned> bytes;
  for (int c = file.get(); c != EOF; c = file.get()) bytes.push_back(static_cast<unsigned>(c));
  return bytes;
}

unsigned big_endian(const std::vector<unsigned>& bytes, std::size_t at) {
  return bytes[at] << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3];
}

/// The rows of a PNG of stored blocks, with the byte before each; every length, name and checksum on the way is checked
/// bit by bit.
std::vector<unsigned> read_png(const std::vector<unsigned>& file, std::array<std::size_t, 3> shape) {
  const std::vector<unsigned> signature = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
  REQUIRE(std::equal(signature.begin(), signature.end(), file.begin()));
  std::vector<unsigned> rows, zlib;
  std::string names;
  for (std::size_t at = 8; at < file.size();) {
    const std::size_t length = big_endian(file, at);
    std::uint32_t crc = 0xffffffff;
    for (std::size_t i = at + 4; i < at + 8 + length; ++i) {
      crc ^= file[i];
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    REQUIRE(big_endian(file, at + 8 + length) == ~crc);
    const std::string name(file.begin() + static_cast<long>(at + 4), file.begin() + static_cast<long>(at + 8));
    const auto data = file.begin() + static_cast<long>(at + 8);
    names += name + " ";
    if (name == "IHDR") {
      REQUIRE(big_endian(file, at + 8) == shape[1]);
      REQUIRE(big_endian(file, at + 12) == shape[0]);
      REQUIRE(std::vector<unsigned>(data + 8, data + 13) ==
              std::vector<unsigned>{8, shape[2] == 3 ? 2U : 0U, 0, 0, 0});
    }
    if (name == "IDAT") zlib.assign(data, data + static_cast<long>(length));
    at += length + 12;
  }
  REQUIRE(names == "IHDR IDAT IEND ");
  REQUIRE((zlib[0] * 256 + zlib[1]) % 31 == 0);
  REQUIRE((zlib[0] & 15) == 8);
  std::size_t at = 2;
  for (bool last = false; !last;) {
    REQUIRE(zlib[at] <= 1);
    last = zlib[at] == 1;
    const std::size_t length = zlib[at + 1] + 256 * zlib[at + 2];
    REQUIRE(zlib[at + 3] + 256 * zlib[at + 4] == 65535 - length);
    const auto block = zlib.begin() + static_cast<long>(at + 5);
    rows.insert(rows.end(), block, block + static_cast<long>(length));
    at += 5 + length;
  }
  std::uint64_t low = 1, high = 0;
  for (const unsigned byte : rows) high += low += byte;
  REQUIRE(big_endian(zlib, at) == (high % 65521 * 65536 + low % 65521));
  REQUIRE(at + 4 == zlib.size());
  return rows;
}

}  // namespace

TEST_CASE("a grid is the images side by side") {
  for (const std::size_t channels : {1, 3}) {
    const auto p = noise({7, 5, 4, channels});
    CHECK(same(mr::make_grid(view_of(p)), slow_grid(p, 7, 3, 2)));
    CHECK(same(mr::make_grid(view_of(p), {.most = 4}), slow_grid(p, 4, 2, 2)));
    CHECK(same(mr::make_grid(view_of(p), {.columns = 7, .gap = 0}), slow_grid(p, 7, 7, 0)));
    CHECK(same(mr::make_grid(view_of(p), {.most = 2, .columns = 5, .gap = 1}), slow_grid(p, 2, 2, 1)));
    CHECK(same(mr::make_grid(view_of(p), {.most = 1}), slow_grid(p, 1, 1, 2)));
  }
}

TEST_CASE_TEMPLATE("normalize() is undone", T, float, mr::f16, mr::bf16) {
  const auto p = noise({4, 9, 11, 3});
  for (const auto layout : {mr::image_layout::nhwc, mr::image_layout::nchw}) {
    const mr::normalize_options options{
        .mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}, .layout = layout};
    mr::tensor<T, 4> numbers(layout == mr::image_layout::nchw ? std::array<std::size_t, 4>{4, 3, 9, 11} : p.shape());
    mr::normalize(view_of(p), mr::tensor_view<T, 4>{.data = numbers.data(), .shape = numbers.shape()}, options);
    const int off = furthest(mr::make_grid(view_of(numbers), {.normalized = options}), slow_grid(p, 4, 2, 2));
    CHECK(off <= (std::is_same_v<T, mr::bf16> ? 1 : 0));
  }
}

TEST_CASE("numbers beyond black and white are clamped, and NaN is black") {
  mr::tensor<float, 4> numbers({1, 1, 6, 1});
  const float infinite = std::numeric_limits<float>::infinity();
  std::ranges::copy(std::array{-0.1F, 1.1F, 0.5F, infinite, -infinite, std::nanf("")}, numbers.data());
  const std::vector<std::uint8_t> expected = {0, 255, 128, 255, 0, 0};
  CHECK(std::ranges::equal(mr::make_grid(view_of(numbers)).span(), expected));
}

TEST_CASE("a batch uses its first column of images, from any memory") {
  const far_batch b{.pixels = noise({3, 4, 5, 3}), .boxes = {}};
  CHECK_THROWS_AS(mr::make_grid(std::get<1>(b.columns())), mr::setup_error);
  CHECK(same(mr::make_grid(b), slow_grid(b.pixels, 3, 2, 2)));
}

TEST_CASE("a PNG contains the very pixels, in one block or in several") {
  const temporary_folder folder;
  for (const std::size_t side : {1, 9, 160})
    for (const std::size_t channels : {1, 3}) {
      const auto p = noise({1, side, side + 2, channels});
      mr::save_grid(view_of(p), folder / "batch.png");
      const auto rows = read_png(content_of(folder / "batch.png"), {side, side + 2, channels});
      const std::size_t row = (side + 2) * channels;
      REQUIRE(rows.size() == side * (row + 1));
      for (std::size_t y = 0; y < side; ++y) {
        CHECK(rows[y * (row + 1)] == 0);
        CHECK(std::equal(p.data() + y * row, p.data() + (y + 1) * row,
                         rows.begin() + static_cast<long>(y * (row + 1) + 1)));
      }
    }
  CHECK(folder.file_count() == 1);
  CHECK_THROWS_AS(mr::encode_png(mr::image({4, 4, 2})), mr::setup_error);
  CHECK_THROWS_AS(mr::encode_png(mr::image({0, 4, 3})), mr::setup_error);
}

TEST_CASE("a JPEG for a file and the same for the log") {
  const temporary_folder folder;
  const auto p = noise({6, 8, 8, 3});
  for (const char* name : {"batch.jpg", "batch.jpeg"}) {
    mr::save_grid(view_of(p), folder / name, {.quality = 80});
    const auto logged = mr::encode_grid(view_of(p), "augmented", {.quality = 80});
    CHECK(logged.name == "augmented");
    CHECK(logged.width == 28);
    CHECK(logged.height == 18);
    const auto file = content_of(folder / name);
    CHECK(std::ranges::equal(file, logged.file, {}, {}, [](std::byte b) { return std::to_integer<unsigned>(b); }));
    const auto header = mr::read_jpeg_header(logged.file);
    CHECK(header.width == logged.width);
    CHECK(header.height == logged.height);
  }
}

TEST_CASE("columns that cannot be shown or written are refused by name") {
  const auto p = noise({2, 4, 4, 3});
  CHECK_THROWS_WITH_AS(mr::save_grid(view_of(p), "batch.gif"), doctest::Contains("'batch.gif'"), mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::make_grid(view_of(noise({2, 4, 4, 2}))),
                       doctest::Contains("'example::pixels' of shape [2, 4, 4, 2], read as [B, H, W, C]"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::make_grid(view_of(p), {.normalized = {.layout = mr::image_layout::nchw}}),
                       doctest::Contains("read as [B, C, H, W]"), mr::setup_error);
  CHECK_THROWS_AS(mr::make_grid(view_of(noise({0, 4, 4, 3}))), mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::save_grid(view_of(p), "/no/such/folder/batch.png"),
                       doctest::Contains("cannot create the file '/no/such/folder/batch.png'"), mr::io_error);
}

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
struct far_overlay {
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
  const far_overlay b{.pixels = random_numbers<std::uint8_t, 4>({3, 4, 5, 3}, 256),
                    .classes = random_numbers<std::uint8_t, 3>({3, 4, 5}, 4),
                    .edges = random_numbers<float, 3>({3, 2, 4}, 5),
                    .counts = random_numbers<std::int32_t, 1>({3}, 3)};
  mr::grid_boxes near_boxes, far_boxes;
  near_boxes.edges = named(b.edges), near_boxes.counts = named(b.counts);
  far_boxes.edges = far_overlay::far(b.edges), far_boxes.counts = far_overlay::far(b.counts);
  const mr::image expected = mr::make_grid(named(b.pixels), {.masks = named(b.classes), .boxes = near_boxes});
  const mr::image grid = mr::make_grid(b, {.masks = far_overlay::far(b.classes), .boxes = far_boxes});
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
