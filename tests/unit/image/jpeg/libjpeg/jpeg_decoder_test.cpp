#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/pictures.hpp>

#include "../../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <functional>

namespace mr = millrace;

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
