// The bytes of images: their owners, junk in JPEGs, and files of other formats.
#include <millrace/image/any_picture.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/padded_picture.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/pnm/pnm.hpp>
#include <millrace/io/file/read_file.hpp>
#include <millrace/item/bytes.hpp>

#include "../../temporary_folder.hpp"
#include "jpeg_recipes.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mr = millrace;
using namespace std::string_view_literals;

// Bytes that own their memory, and the error of decoding borrowed ones that were freed or changed.
#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifndef __SANITIZE_ADDRESS__
namespace {
const void* poisoned = nullptr;
}
// Replaces AddressSanitizer: one address is poisoned.
extern "C" void* __asan_region_is_poisoned(void* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin), at = reinterpret_cast<std::uintptr_t>(poisoned);
  return first <= at && at - first < bytes ? const_cast<void*>(poisoned) : nullptr;
}
#endif

namespace {

std::string jpeg_text() {
  mr::image pixels({30, 40, 3});
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels.data()[i] = static_cast<std::uint8_t>(i * 7);
  const auto file = mr::encode_jpeg(pixels);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

template <class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const mr::setup_error& e) {
    return e.message();
  }
  return "no setup_error";
}
const std::string changed =
    "the bytes of an image changed before it was decoded: bytes::borrowed() does not keep memory alive, and images are "
    "decoded after the callable in map() has returned";
const std::string freed =
    "the bytes of an image were freed before it was decoded: bytes::borrowed() does not keep memory alive, and images "
    "are decoded after the callable in map() has returned";

}  // namespace

TEST_CASE("owned bytes keep their memory, and so does an image of them") {
  const std::string text = jpeg_text();
  const mr::image expected = mr::jpeg(mr::bytes::borrowed(text)).pixels();
  auto local = std::make_unique<std::string>(text);
  mr::bytes copy = mr::bytes::owned(*local, std::string("jpg"));
  const mr::picture p = mr::jpeg(copy);
  const mr::picture of_vector = mr::jpeg(mr::bytes::owned(std::vector<std::uint8_t>(text.begin(), text.end())));
  const mr::picture of_bytes =
      mr::jpeg(mr::bytes::owned(std::vector<std::byte>(copy.data(), copy.data() + copy.size())));
  local->assign(text.size(), 'x');
  local.reset();
  CHECK(copy.name() == "jpg");
  CHECK(copy.text() == text);
  copy = {};
  for (const mr::picture* each : {&p, &of_vector, &of_bytes})
    CHECK(std::memcmp(each->pixels().data(), expected.data(), expected.size()) == 0);
  CHECK(mr::bytes::owned("").empty());
  CHECK(mr::bytes::owned("abc").size() == 3);   // a literal without its zero
}

TEST_CASE("read_file returns the bytes of a file, which name it in errors") {
  const temporary_folder folder;
  std::ofstream(folder / "a.JPG", std::ios::binary) << jpeg_text();
  std::ofstream(folder / "empty") << "";
  CHECK(mr::read_file(folder / "a.JPG").text() == jpeg_text());
  CHECK(mr::read_file(folder / "a.JPG").name() == "jpg");
  CHECK(mr::read_file(folder / "empty").empty());
  CHECK(mr::read_file(folder / "empty").name() == "file");
  CHECK(mr::jpeg(mr::read_file(folder / "a.JPG")).width() == 40);
  for (const std::string& name : {folder / "none.jpg", folder.path()}) {
    std::string what;
    try {
      (void)mr::read_file(name);
    } catch (const mr::io_error& e) {
      what = e.what();
    }
    CHECK(what.find(name) != std::string::npos);
  }
  std::string what;
  try {
    (void)mr::jpeg(mr::read_file(folder / "empty"));
  } catch (const mr::data_error& e) {
    what = e.what();
  }
  CHECK(what.find(folder / "empty") != std::string::npos);
}

TEST_CASE("decoding reports borrowed bytes that changed after the plan was built, at any offset") {
  std::string text = jpeg_text();
  const mr::picture p = mr::jpeg(mr::bytes::borrowed(text));
  CHECK(message_of([&] { (void)p.pixels(); }) == "no setup_error");
  for (const std::size_t at : {std::size_t{0}, text.size() / 2, text.size() - 1}) {
    text[at] = static_cast<char>(text[at] ^ 1);
    CHECK(message_of([&] { (void)p.pixels(); }) == changed);
    const mr::padded_picture padded(p, {.to = {.width = 64, .height = 64}});
    mr::scratch s;
    std::vector<std::uint8_t> row(64 * 64 * 3);
    CHECK(message_of([&] { padded.render(row, s); }) == changed);
    text[at] = static_cast<char>(text[at] ^ 1);
  }
  CHECK(message_of([&] { (void)p.pixels(); }) == "no setup_error");
  std::string map = "P5\n4 2\n255\n01234567";
  const mr::label_map<> labels = mr::labels(mr::bytes::borrowed(map, "pgm"));
  map.back() = 'x';
  CHECK(message_of([&] { (void)labels.values(); }).find("the bytes of a label map changed") == 0);
}

TEST_CASE("decoding reports borrowed bytes whose memory is gone") {
  const std::string text = jpeg_text();
  constexpr std::size_t mapped = 1 << 16;
  void* const memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::memcpy(memory, text.data(), text.size());
  const mr::picture p = mr::jpeg(mr::bytes::borrowed({static_cast<const char*>(memory), text.size()}));
  ::munmap(memory, mapped);
  CHECK(message_of([&] { (void)p.pixels(); }) == freed);
}

TEST_CASE("decoding reports borrowed bytes that AddressSanitizer knows to be freed") {
  auto local = std::make_unique<std::string>(jpeg_text());
  const mr::picture p = mr::jpeg(mr::bytes::borrowed(*local));
#ifdef __SANITIZE_ADDRESS__
  local.reset();
#else
  poisoned = local->data() + local->size() / 3;   // where no checksum looks
#endif
  CHECK(message_of([&] { (void)p.pixels(); }) == freed);
#ifndef __SANITIZE_ADDRESS__
  poisoned = nullptr;
#endif
}

// Bytes that do not belong in a JPEG, where decoders skip them: the same pixels and the same verdict everywhere.

namespace {

using slow::file_bytes, slow::segments_of, slow::with;

struct result {
  std::vector<std::uint8_t> pixels{};
  std::uint64_t warnings = 0, damaged = 0;
  std::string error{};
};

result decode(const file_bytes& file, mr::picture_decoder decoder = mr::picture_decoder::automatic) {
  result r;
  mr::event_counts counts;
  mr::scratch s;
  s.count_into(counts);
  try {
    const auto all = mr::jpeg(mr::bytes::borrowed(file), {.decoder = decoder}).pixels(s);
    r.pixels.assign(all.data(), all.data() + all.size());
  } catch (const mr::data_error& e) {
    r.error = e.what();
  }
  for (const auto& c : counts.counts()) {
    if (mr::detail::event_of_text(c.what) == mr::detail::event_name::warnings) r.warnings += c.times;
    if (mr::detail::event_of_text(c.what) == mr::detail::event_name::damaged) r.damaged += c.times;
  }
  return r;
}

}  // namespace

TEST_CASE("junk between header segments and before the end is a counted warning, in baseline and progressive files") {
  using namespace std::string_view_literals;
  for (const bool progressive : {false, true})
    for (const std::size_t channels : {1U, 3U}) {
      const file_bytes file =
          slow::make_jpeg(slow::photo(60, 44, channels, 5),
                          {.stored = channels == 1 ? JCS_GRAYSCALE : JCS_YCbCr, .progressive = progressive,
                           .restart_interval = 3});
      const result clean = decode(file);
      REQUIRE(clean.error.empty());
      REQUIRE(clean.warnings == 0);
      std::vector<std::size_t> places = segments_of(file);
      places.push_back(file.size() - 2);
      for (const std::size_t at : places)
        for (const std::string_view junk :
             {"\x7f"sv, "\xff\0"sv, "seven b"sv, "\0\0\0\0\0"sv, "more bytes than are read ahead"sv}) {
          CAPTURE(at);
          CAPTURE(progressive);
          CAPTURE(junk.size());
          const file_bytes spoiled = with(file, at, junk);
          for (const auto decoder : {mr::picture_decoder::automatic, mr::picture_decoder::libjpeg}) {
            const result r = decode(spoiled, decoder);
            REQUIRE_MESSAGE(r.error.empty(), r.error);
            CHECK(r.pixels == clean.pixels);
            CAPTURE(static_cast<int>(decoder));
            // libjpeg prefetches some bytes of a scan, and drops the ones that it does not need.
            const bool read_ahead = at == file.size() - 2 && junk.size() < 9;
            CHECK((r.warnings == 1 || (read_ahead && r.warnings == 0)));
            CHECK(r.damaged == 0);
          }
        }
    }
}

TEST_CASE("bytes after a scan that is not the last are damage: they may be its lost data") {
  const file_bytes file = slow::make_jpeg(slow::photo(60, 44, 3, 6), {.progressive = true});
  std::size_t second_scan = 0;
  for (std::size_t i = segments_of(file).back() + 2; i + 1 < file.size() && second_scan == 0; ++i) {
    const int marker = std::to_integer<int>(file[i + 1]);
    if (std::to_integer<int>(file[i]) == 0xff && (marker == 0xc4 || marker == 0xda)) second_scan = i;
  }
  REQUIRE(second_scan > 0);
  CHECK(decode(with(file, second_scan, "more bytes than are read ahead")).error.find("extraneous") !=
        std::string::npos);
}

TEST_CASE("bytes in the place of the end change no pixel and are not damage, and junk at the front is an error") {
  for (const bool progressive : {false, true})
    for (const auto decoder : {mr::picture_decoder::automatic, mr::picture_decoder::libjpeg}) {
      CAPTURE(progressive);
      CAPTURE(static_cast<int>(decoder));
      const file_bytes file = slow::make_jpeg(slow::photo(60, 44, 3, 7), {.progressive = progressive});
      CHECK(!decode(with(file, 2, "seven b"), decoder).error.empty());
      if (progressive) continue;   // its last scan may lack data
      file_bytes without_end(file.begin(), file.end() - 2);
      without_end.resize(without_end.size() + 400, std::byte{'x'});
      const result r = decode(without_end, decoder);
      REQUIRE_MESSAGE(r.error.empty(), r.error);
      CHECK(r.pixels == decode(file, decoder).pixels);
      CHECK(r.damaged == 0);
    }
}

// Files of other formats in the place of images: their names, and advice that helps.

namespace {

struct other {
  std::string_view begin, name, advice;
};

constexpr other formats[] = {
    {"RIFF\x10\0\0\0WEBPVP8 "sv, "a WebP", "millrace/adapt/webp.hpp"},
    {"GIF89a\1\0\1\0"sv, "a GIF", "Convert it"},
    {"II*\0\x08\0\0\0"sv, "a TIFF", "Convert it"},
    {"BM\x10\0\0\0"sv, "a BMP", "Convert it"},
    {"\0\0\0\x18" "ftypavif"sv, "an ISO media file (HEIF, AVIF or MP4)", "Convert it"},
    {"8BPS\0\1\0\0\0\0\0\0"sv, "a PSD of Photoshop", "Convert it"},
    {"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0\0\0\0\0\x16\0\0\0"sv, "an ICO", "Convert it"},
    {"qoif\0\0\0\1"sv, "a QOI", "Convert it"},
    {"\x76\x2f\x31\x01\2\0\0\0"sv, "an OpenEXR file", "Convert it"},
    {"#?RADIANCE\nFORMAT="sv, "a Radiance HDR file", "Convert it"},
    {"DDS \x7c\0\0\0"sv, "a DDS texture", "Convert it"},
    {"<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>"sv, "an SVG", "Convert it"},
    {"\x93NUMPY\1\0\x76\0{'descr'"sv, "a NumPy .npy file", "mr::array"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1\n"sv, "a Git LFS pointer", "git lfs pull"},
    {"<!DOCTYPE html><html><head><title>404 Not Found</title></head></html>"sv, "an HTML or XML page", "server"},
    {"{\"error\": \"rate limit\"}"sv, "a JSON text", "server"},
    {"PK\3\4\x14\0\0\0\x08\0"sv, "a ZIP file", "Convert it"},
    {""sv, "0 bytes", "Select the field"},
    {"\0\0\0\0\0\0\0\0"sv, "00 00 00 00", "Select the field"},
    {"\xff\xd8"sv, "ff d8", "Select the field"},
};

template <class Read>
std::string error_of(std::string_view file, const Read& read) {
  try {
    (void)read(mr::bytes::borrowed(std::as_bytes(std::span(file))));
  } catch (const mr::data_error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("each reader of images names the format that it got, and any_picture() does not recommend itself") {
  for (const other& f : formats) {
    CAPTURE(f.name);
    const std::string any = error_of(f.begin, [](mr::bytes b) { return mr::any_picture(std::move(b)); });
    CHECK_MESSAGE(any.find("an image was expected") != std::string::npos, any);
    CHECK_MESSAGE(any.find("(supported: JPEG, PNG, PNM") != std::string::npos, any);
    if (f.name != "a WebP") CHECK_MESSAGE(any.find("any_picture") == std::string::npos, any);
    for (const std::string& text :
         {any, error_of(f.begin, [](mr::bytes b) { return mr::jpeg(std::move(b)); }),
          error_of(f.begin, [](mr::bytes b) { return mr::png(std::move(b)); }),
          error_of(f.begin, [](mr::bytes b) { return mr::pnm(std::move(b)); })}) {
      CHECK_MESSAGE(text.find(f.name) != std::string::npos, text);
      CHECK_MESSAGE(text.find(f.advice) != std::string::npos, text);
    }
  }
  const std::string targa = std::string("\0\0\2\0\0\0\0\0\0\0\0\0\1\0\1\0\x18\0", 18) + "xyz" + std::string(8, '\0') +
                            std::string("TRUEVISION-XFILE.\0", 18);
  CHECK(error_of(targa, [](mr::bytes b) { return mr::any_picture(std::move(b)); }).find("a TGA") != std::string::npos);
  const std::string_view ppm = "P6\n1 1\n255\nabc", png = "\x89PNG\r\n\x1a\n";
  CHECK(error_of(ppm, [](mr::bytes b) { return mr::jpeg(std::move(b)); }).find("Use mr::pnm()") != std::string::npos);
  CHECK(error_of(png, [](mr::bytes b) { return mr::jpeg(std::move(b)); }).find("Use mr::png()") != std::string::npos);
}
