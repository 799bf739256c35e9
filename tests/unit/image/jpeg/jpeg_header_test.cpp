#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>

#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;

namespace {

std::vector<std::byte> as_bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

std::string message_of(std::span<const std::byte> data) {
  try {
    (void)mr::read_jpeg_header(data);
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "jpeg");
    return e.message();
  }
  return "no error";
}

std::string message_of(std::string_view text) { return message_of(std::as_bytes(std::span(text.data(), text.size()))); }

/// SOI and a frame header with the given marker, precision and components, 5 x 4 pixels.
std::vector<std::byte> frame(int marker, int precision, int components) {
  auto header = as_bytes({0xff, 0xd8, 0xff, marker, 0, 8 + 3 * components, precision, 0, 4, 0, 5, components});
  for (int i = 0; i < 3 * components; ++i) header.push_back(std::byte{1});
  return header;
}

}  // namespace

TEST_CASE("the header contains size, components and coding") {
  const auto pixels = slow::photo(37, 53, 3, 1);
  const auto h = mr::read_jpeg_header(mr::encode_jpeg(pixels));
  CHECK(h.width == 53);
  CHECK(h.height == 37);
  CHECK(h.components == 3);
  CHECK_FALSE(h.progressive);
  CHECK(h.orientation == 1);
  CHECK(mr::read_jpeg_header(mr::encode_jpeg(pixels, {.progressive = true})).progressive);
  CHECK(mr::read_jpeg_header(mr::encode_jpeg(pixels, {.arithmetic = true})).arithmetic);
  CHECK(mr::read_jpeg_header(mr::encode_jpeg(slow::photo(3, 3, 1, 1))).components == 1);
}

TEST_CASE("bytes of another format are named") {
  using namespace std::string_view_literals;
  CHECK(message_of(""sv) == "a JPEG was expected, but there are 0 bytes");
  CHECK(message_of("\x89PNG\r\n\x1a\n...."sv) == "a JPEG was expected, but the bytes look like a PNG");
  CHECK(message_of("GIF89a"sv) == "a JPEG was expected, but the bytes look like a GIF");
  CHECK(message_of("RIFF\1\2\3\4WEBPVP8 "sv) == "a JPEG was expected, but the bytes look like a WebP");
  CHECK(message_of("<!DOCTYPE html>"sv) == "a JPEG was expected, but the bytes look like an HTML or XML page");
  CHECK(message_of("\0\0\0\x1c"
                   "ftypavif"sv) ==
        "a JPEG was expected, but the bytes look like an ISO media file (HEIF, AVIF or MP4)");
  CHECK(message_of("\xff\xd8"sv) == "a JPEG begins with ff d8 ff, but these 2 bytes begin with ff d8");
  CHECK(message_of("\xff\xd8\x7f\xe0"sv) == "the JPEG's first marker is damaged: got ff d8 7f e0, expected ff d8 ff");
  CHECK(message_of("1234567890"sv) ==
        "a JPEG begins with ff d8 ff, but these 10 bytes begin with 31 32 33 34 35 36 37 38");
}

TEST_CASE("unsupported processes are named") {
  CHECK(mr::read_jpeg_header(frame(0xc0, 8, 3)).width == 5);
  CHECK(mr::read_jpeg_header(frame(0xc1, 8, 4)).components == 4);
  CHECK(mr::read_jpeg_header(frame(0xca, 8, 1)).height == 4);
  CHECK(message_of(frame(0xc1, 12, 3)) == "the JPEG has an unsupported sample precision: got 12 bits, expected 8");
  CHECK(message_of(frame(0xc0, 8, 2)) == "the JPEG has an unsupported number of components: got 2, expected 1, 3 or 4");
  for (const int marker : {0xc3, 0xc5, 0xc6, 0xc7, 0xcb, 0xcd, 0xce, 0xcf})
    CHECK(message_of(frame(marker, 8, 3)) == "the JPEG is lossless or hierarchical, which is not supported");
  auto no_rows = frame(0xc0, 8, 3);
  no_rows[8] = std::byte{0};
  CHECK(message_of(no_rows) == "the JPEG's header declares an empty image: got 5 x 0 pixels");
}

TEST_CASE("a header cut anywhere is an error with its place") {
  const auto file = mr::encode_jpeg(slow::photo(8, 8, 3, 2));
  std::size_t shortest = 0;   // the shortest prefix that contains the frame header
  for (std::size_t n = 3; n <= file.size(); ++n) {
    const std::vector<std::byte> part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
    const auto message = message_of(part);
    if (message == "no error") {
      if (shortest == 0) shortest = n;
    } else {
      CHECK(shortest == 0);
      CHECK(message == "the JPEG ends after " + std::to_string(n) + " bytes, inside its headers");
    }
  }
  CHECK(shortest > 100);
  CHECK(message_of(as_bytes({0xff, 0xd8, 0xff, 0xda, 0, 2})) == "the JPEG has no frame header before its first scan");
  CHECK(message_of(as_bytes({0xff, 0xd8, 0xff, 0xf7, 0, 11, 8, 0, 16, 0, 16, 1, 1, 0x11, 0, 0xff, 0xda, 0, 2})) ==
        "the JPEG is a JPEG-LS, which is not supported");
}

TEST_CASE("the orientation is read in both byte orders and never beyond the segment") {
  for (const bool little : {false, true})
    for (int value = 0; value <= 9; ++value) {
      const auto two = [&](int v) { return little ? std::array{v, 0} : std::array{0, v}; };
      std::vector<std::byte> segment;
      const auto add = [&](auto... v) { (segment.push_back(static_cast<std::byte>(v)), ...); };
      const auto add_two = [&](int v) { add(two(v)[0], two(v)[1]); };
      const auto add_four = [&](int v) { little ? add(v, 0, 0, 0) : add(0, 0, 0, v); };
      add('E', 'x', 'i', 'f', 0, 0);
      little ? add('I', 'I', 42, 0) : add('M', 'M', 0, 42);
      add_four(8);
      add_two(2);
      for (const int tag : {0x0f, 0x12}) {   // another tag first
        little ? add(tag, 1) : add(1, tag);
        add_two(3);
        add_four(1);
        add_two(value);
        add_two(0);
      }
      CHECK(mr::detail::exif_orientation(segment) == (value >= 1 && value <= 8 ? value : 0));
      for (std::size_t n = 0; n < segment.size(); ++n) {
        const std::vector<std::byte> part(segment.begin(), segment.begin() + static_cast<std::ptrdiff_t>(n));
        CHECK(mr::detail::exif_orientation(part) == 0);
      }
      mr::rng random({.seed = 3});
      for (int round = 0; round < 200; ++round) {
        auto broken = segment;
        broken[random.below(broken.size())] = static_cast<std::byte>(random.below(256));
        const int orientation = mr::detail::exif_orientation(broken);
        CHECK((orientation >= 0 && orientation <= 8));
      }
    }
}

TEST_CASE("encoded images are decoded nearly unchanged, in every kind of file") {
  mr::image smooth({50, 70, 3});
  for (std::size_t y = 0; y < 50; ++y)
    for (std::size_t x = 0; x < 70; ++x) {
      smooth(y, x, 0) = static_cast<std::uint8_t>(60 + y + x);
      smooth(y, x, 1) = static_cast<std::uint8_t>(200 - y);
      smooth(y, x, 2) = static_cast<std::uint8_t>(90 + x);
    }
  for (const auto sampling : {mr::chroma_sampling::yuv444, mr::chroma_sampling::yuv422, mr::chroma_sampling::yuv440,
                              mr::chroma_sampling::yuv420, mr::chroma_sampling::yuv411})
    for (const bool progressive : {false, true})
      for (const unsigned restart : {0U, 2U}) {
        const auto file = mr::encode_jpeg(
            smooth, {.quality = 98, .sampling = sampling, .progressive = progressive, .restart_rows = restart});
        CHECK(slow::compare(slow::decode(file), slow::real(smooth)).mean < 1);
      }
  const auto rgb = mr::encode_jpeg(smooth, {.quality = 100, .keep_rgb = true});
  CHECK(slow::compare(slow::decode(rgb), slow::real(smooth)).max <= 1);
  const auto gray = slow::photo(31, 33, 1, 1);
  CHECK(slow::compare(slow::decode(mr::encode_jpeg(gray, {.quality = 100}), JCS_GRAYSCALE), slow::real(gray)).max <= 2);
}

TEST_CASE("options have their documented effects") {
  const auto p = slow::photo(64, 64, 3, 2);
  const auto plain = mr::encode_jpeg(p, {.optimize_tables = false});
  CHECK(mr::encode_jpeg(p).size() < plain.size());
  CHECK(mr::encode_jpeg(p, {.quality = 20}).size() < plain.size() / 2);
  CHECK(mr::encode_jpeg(p, {.arithmetic = true}).size() < plain.size());
  CHECK(mr::encode_jpeg(p) == mr::encode_jpeg(p));
  std::size_t markers = 0;
  const auto restarts = mr::encode_jpeg(p, {.restart_rows = 1});   // 4 rows of 16 x 16 blocks, a marker between each
  for (std::size_t i = 0; i + 1 < restarts.size(); ++i)
    markers +=
        restarts[i] == std::byte{0xff} && restarts[i + 1] >= std::byte{0xd0} && restarts[i + 1] <= std::byte{0xd7};
  CHECK(markers == 3);
}

TEST_CASE("images that JPEG cannot store are refused") {
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({4, 4, 2})), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({0, 4, 3})), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({1, 65'501, 1})), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({4, 4, 3}), {.quality = 0}), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({4, 4, 3}), {.quality = 101}), mr::setup_error);
}
