// Files of other formats in the place of images: their names, and advice that helps.
#include <millrace/image/any_picture.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/pnm/pnm.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace mr = millrace;
using namespace std::string_view_literals;

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
