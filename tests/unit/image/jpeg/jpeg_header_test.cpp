#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/pictures.hpp>

#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <functional>

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

namespace {

/// The smallest processor time of five calls: a busy machine lengthens some, and shortens none.
double least_cpu_seconds(const std::function<void()>& call) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t before = std::clock();
    call();
    least = std::min(least, static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  }
  return least;
}

/// The outcome of decoding: empty for pixels, else the error's message.
std::string outcome(std::span<const std::byte> file, const mr::jpeg_options& options, mr::scratch& s) {
  // A copy of exact size on the heap, so that AddressSanitizer detects any read beyond it.
  const std::vector<std::byte> exact(file.begin(), file.end());
  try {
    const auto p = mr::jpeg(slow::view(exact), options);
    const auto pixels = p.width() * p.height() > 10'000 ? p.resize(20, 20).pixels(s) : p.pixels(s);
    CHECK(pixels.size() > 0);
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "jpeg");
    return e.message();
  }
  return {};
}

std::vector<std::byte> patched(std::vector<std::byte> file, std::size_t width, std::size_t height) {
  for (std::size_t i = 0; i + 9 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && (file[i + 1] == std::byte{0xc0} || file[i + 1] == std::byte{0xc2})) {
      file[i + 5] = static_cast<std::byte>(height >> 8);
      file[i + 6] = static_cast<std::byte>(height & 255);
      file[i + 7] = static_cast<std::byte>(width >> 8);
      file[i + 8] = static_cast<std::byte>(width & 255);
      break;
    }
  return file;
}

/// A progressive file with its last scan repeated.
std::vector<std::byte> with_scans(std::vector<std::byte> file, int more) {
  std::size_t scan = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] == std::byte{0xda}) scan = i;
  const std::vector<std::byte> last(file.begin() + static_cast<std::ptrdiff_t>(scan), file.end() - 2);
  const std::vector<std::byte> end(file.end() - 2, file.end());
  file.erase(file.end() - 2, file.end());
  for (int i = 0; i < more; ++i) file.insert(file.end(), last.begin(), last.end());
  file.insert(file.end(), end.begin(), end.end());
  return file;
}

/// Removes the segments of a marker.
std::vector<std::byte> without(std::vector<std::byte> file, std::byte marker) {
  for (std::size_t at = 2; file[at + 1] != std::byte{0xda};) {
    const std::size_t length = 2 + (std::to_integer<std::size_t>(file[at + 2]) << 8 |
                                    std::to_integer<std::size_t>(file[at + 3]));
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
    if (file[at + 1] == marker) file.erase(begin, begin + static_cast<std::ptrdiff_t>(length));
    else at += length;
  }
  return file;
}

}  // namespace

TEST_CASE("a file cut at any length is an error, or pixels where damage is accepted") {
  mr::scratch s;
  for (const bool progressive : {false, true}) {
    const auto file =
        mr::encode_jpeg(slow::photo(20, 24, 3, 1), {.quality = 60, .progressive = progressive, .restart_rows = 1});
    std::size_t accepted = 0;
    for (std::size_t n = 0; n < file.size(); ++n) {
      const auto cut = std::span(file).first(n);
      const auto strict = outcome(cut, {}, s);
      const auto tolerant = outcome(cut, {.accept_damaged = true}, s);
      if (n + 20 < file.size()) CHECK(strict != "");   // the last bytes may be only padding and the end marker
      accepted += tolerant.empty();
      if (strict.empty()) CHECK(tolerant.empty());
    }
    CHECK(accepted > file.size() / 4);
    CHECK(outcome(file, {}, s).empty());   // the decoder is still usable
    CHECK(mr::detail::jpeg_counts_of(s).damaged > 0);
  }
  CHECK(mr::detail::jpeg_counts_of(s).progressive > 0);
}

TEST_CASE("flipped bits never lead to more than an error or other pixels") {
  mr::scratch s;
  mr::rng d({.seed = 2});
  const mr::jpeg_encode_options kinds[] = {{.quality = 50},
                                           {.quality = 50, .progressive = true},
                                           {.quality = 50, .arithmetic = true},
                                           {.quality = 50, .sampling = mr::chroma_sampling::yuv411, .restart_rows = 1}};
  std::size_t errors = 0, pixels = 0;
  for (const auto& kind : kinds) {
    const auto file = mr::encode_jpeg(slow::photo(33, 41, 3, 3), kind);
    for (int i = 0; i < 400; ++i) {
      auto broken = file;
      for (std::uint64_t k = d.below(4) + 1; k > 0; --k)
        broken[d.below(broken.size())] ^= static_cast<std::byte>(1U << d.below(8));
      const mr::jpeg_options o{.quality = d.chance(0.5) ? mr::picture_quality::exact : mr::picture_quality::fast,
                               .apply_orientation = true, .accept_damaged = d.chance(0.5),
                               .limits = {.max_pixels = 1'000'000}};
      outcome(broken, o, s).empty() ? ++pixels : ++errors;
    }
  }
  CHECK(errors > 100);
  CHECK(pixels > 100);
}

TEST_CASE("pixel bombs are refused by their header") {
  const auto file = mr::encode_jpeg(slow::photo(16, 16, 3, 4));
  mr::scratch s;
  const double seconds = least_cpu_seconds([&] {
    CHECK(outcome(patched(file, 65'500, 65'500), {}, s) ==
          "the image's header declares too many pixels: got 65500 x 65500 pixels, expected at most "
          "max_pixels = 178956970");
    CHECK(outcome(patched(file, 20'000, 20'000), {}, s).find("20000 x 20000") != std::string::npos);
    CHECK(outcome(file, {.limits = {.max_pixels = 255}}, s) ==
          "the image's header declares too many pixels: got 16 x 16 pixels, expected at most max_pixels = 255");
    CHECK(outcome(file, {.limits = {.max_pixels = 256}}, s).empty());
    // Below the limit, but with nothing after the header: the first missing byte ends it.
    CHECK(outcome(patched(file, 13'000, 13'000), {}, s) != "");
    CHECK(outcome(patched(file, 65'535, 1), {}, s) != "");   // more than libjpeg supports
  });
  CHECK(seconds < 0.2);
}

TEST_CASE("scans and memory of progressive files are bounded") {
  const auto file = mr::encode_jpeg(slow::photo(64, 64, 1, 5), {.progressive = true});
  mr::scratch s;
  CHECK(outcome(with_scans(file, 80), {.accept_damaged = true}, s).empty());
  const double seconds = least_cpu_seconds([&] {
    CHECK(outcome(with_scans(file, 1'000), {.accept_damaged = true}, s) == "the JPEG has more than 100 scans");
    CHECK(outcome(with_scans(file, 0), {.limits = {.max_scans = 2}}, s) == "the JPEG has more than 2 scans");
    CHECK(outcome(file, {.limits = {.max_scans = 5}}, s) == "the JPEG has more than 5 scans");   // it has 6
    CHECK(outcome(file, {.limits = {.max_scans = 6}}, s).empty());
    const auto big =
        mr::encode_jpeg(slow::photo(400, 400, 3, 6), {.sampling = mr::chroma_sampling::yuv444, .progressive = true});
    CHECK(outcome(big, {.limits = {.max_memory_bytes = 100'000}}, s).find("needs more than 100000 bytes") !=
          std::string::npos);
    CHECK(outcome(big, {}, s).empty());
    CHECK(outcome(patched(big, 13'000, 13'000), {}, s).find("needs more than 536870912 bytes") != std::string::npos);
  });
  CHECK(seconds < 0.5);
}

TEST_CASE("decoding stops below the crop") {
  const auto file = mr::encode_jpeg(slow::photo(200, 80, 3, 7), {.sampling = mr::chroma_sampling::yuv444});
  const auto cut =
      std::vector<std::byte>(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() * 2 / 3));
  mr::scratch s;
  CHECK(mr::jpeg(slow::view(cut)).crop({.left = 0, .top = 0, .width = 80, .height = 40}).pixels(s).size() > 0);
  CHECK_THROWS_AS((void)mr::jpeg(slow::view(cut)).crop({.left = 0, .top = 160, .width = 80, .height = 40}).pixels(s),
                  mr::data_error);
  CHECK(mr::detail::jpeg_counts_of(s).pictures == 1);
  CHECK(mr::detail::jpeg_counts_of(s).damaged == 0);
}

TEST_CASE("results do not depend on earlier uses of a scratch") {
  mr::rng d({.seed = 8});
  mr::scratch used;
  for (int i = 0; i < 30; ++i) {
    const auto file = mr::encode_jpeg(slow::photo(d.below(90) + 1, d.below(90) + 1, d.chance(0.3) ? 1 : 3, d.bits()),
                                      {.progressive = d.chance(0.3)});
    const auto p = mr::jpeg(slow::view(file)).random_resized_crop(d.below(40) + 1, d);
    const auto a = p.pixels(used), b = p.pixels();
    CHECK(std::equal(a.span().begin(), a.span().end(), b.span().begin()));
  }
}

TEST_CASE("a file without its tables is not decoded by those of the previous file") {
  const auto pixels = slow::photo(40, 60, 3, 9);
  const auto before = mr::encode_jpeg(slow::photo(50, 50, 3, 10), {.quality = 7});
  const auto file = mr::encode_jpeg(pixels, {.optimize_tables = false});
  mr::scratch used;
  (void)mr::jpeg(slow::view(before), {.decoder = mr::picture_decoder::libjpeg}).pixels(used);
  // libjpeg-turbo uses the standard's Huffman tables if there are none, as in the frames of a film.
  const auto bare = without(file, std::byte{0xc4});
  const auto a = mr::jpeg(slow::view(bare)).pixels(used), b = mr::jpeg(slow::view(file)).pixels();
  CHECK(std::equal(a.span().begin(), a.span().end(), b.span().begin()));
  CHECK(outcome(without(file, std::byte{0xdb}), {}, used) ==
        "the JPEG cannot be decoded: Quantization table 0x00 was not defined");
}
