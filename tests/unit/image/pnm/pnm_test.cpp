#include <millrace/image/any_picture.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/pnm/pnm.hpp>

#include "../planned_pictures.hpp"
#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

std::vector<std::byte> file_of(const std::string& header, const std::vector<std::uint32_t>& samples, bool wide) {
  std::vector<std::byte> file;
  for (const char c : header) file.push_back(static_cast<std::byte>(c));
  for (const std::uint32_t s : samples) {
    if (wide) file.push_back(static_cast<std::byte>(s >> 8));
    file.push_back(static_cast<std::byte>(s & 0xff));
  }
  return file;
}

std::string problem_of(const std::vector<std::byte>& file) {
  try {
    static_cast<void>(mr::pnm(slow::view(file)));
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "pnm");
    return e.message();
  }
  return "none";
}

}  // namespace

TEST_CASE("PGM and PPM of any depth have scaled pixels") {
  mr::rng d({.seed = 8});
  for (const std::uint32_t largest : {1U, 7U, 100U, 255U, 256U, 1000U, 65'535U})
    for (const std::size_t channels : {1U, 3U}) {
      const std::size_t width = d.below(9) + 1, height = d.below(9) + 1;
      std::vector<std::uint32_t> samples(width * height * channels);
      for (auto& s : samples) s = static_cast<std::uint32_t>(d.below(largest + 1));
      const std::string header = std::string(channels == 3 ? "P6" : "P5") + " # a comment 12\n" +
                                 std::to_string(width) + "\t" + std::to_string(height) + "\n#\r" +
                                 std::to_string(largest) + "\n";
      const auto file = file_of(header, samples, largest > 255);
      const mr::image pixels = mr::pnm(slow::view(file)).pixels();
      REQUIRE(pixels.shape() == std::array<std::size_t, 3>{height, width, 3});
      for (std::size_t i = 0; i < width * height; ++i)
        for (std::size_t c = 0; c < 3; ++c) {
          const double scaled = 255.0 * samples[i * channels + (channels == 3 ? c : 0)] / largest;
          REQUIRE(pixels.span()[3 * i + c] == std::floor(scaled + 0.5));
        }
    }
}

TEST_CASE("any blank of C, or a comment, may follow the mark of a PNM") {
  for (const std::string after :
       {" ", "\t", "\n", "\v", "\f", "\r", "#a long comment, as text has it\n", "#\r", " # c\n", "#6ftyp\n"}) {
    CAPTURE(after);
    const std::string file = "P5" + after + "2 1 255\nab";
    for (const bool any : {false, true}) {
      const auto bytes = mr::bytes::borrowed(file);
      const mr::image pixels = any ? mr::any_picture(bytes).pixels() : mr::pnm(bytes).pixels();
      CHECK(pixels.shape() == std::array<std::size_t, 3>{1, 2, 3});
      CHECK(pixels.span()[3] == 'b');
    }
  }
}

TEST_CASE("plans of a PNM are within one level of slow operations on its pixels, alone and together with JPEGs") {
  mr::rng d({.seed = 9});
  mr::scratch s;
  for (int round = 0; round < 60; ++round) {
    const std::size_t width = d.below(90) + 20, height = d.below(90) + 20;
    const mr::image photo = slow::photo(height, width, 3, d.bits());
    std::vector<std::byte> file = file_of("P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n", {},
                                          false);
    for (const std::uint8_t value : photo.span()) file.push_back(static_cast<std::byte>(value));
    const mr::crop_box box{.left = d.below(width / 2), .top = d.below(height / 2), .width = width / 2,
                           .height = height / 2};
    const std::size_t to = d.below(60) + 1;
    const mr::picture p = mr::any_picture(slow::view(file)).crop(box).resize(to, to + 3).flip();
    const mr::image got = p.pixels(s);
    const auto expected = slow::flip(slow::resize(slow::real(slow::crop(photo, box)), to, to + 3));
    REQUIRE(slow::compare(got, expected).max <= 1);

    const auto jpeg_file = mr::encode_jpeg(photo);
    const mr::picture q = mr::any_picture(slow::view(jpeg_file)).resize(20, 30);
    const mr::image alone = q.pixels(s);
    std::vector<std::uint8_t> first(got.size()), second(alone.size()), third(got.size());
    const std::vector<const mr::picture*> items{&p, &q, &p};
    const std::vector<std::span<std::uint8_t>> rows{first, second, third};
    mr::picture::render_together(items, rows, s);
    REQUIRE(std::memcmp(first.data(), got.data(), got.size()) == 0);
    REQUIRE(std::memcmp(second.data(), alone.data(), alone.size()) == 0);
    REQUIRE(third == first);
  }
}

TEST_CASE("damaged PNM files are errors that name the defect") {
  const auto good = file_of("P5 3 2 255\n", {1, 2, 3, 4, 5, 6}, false);
  CHECK(problem_of(good) == "none");
  CHECK(problem_of({}).starts_with("a PNM was expected, but there are 0 bytes"));
  for (std::size_t size = 1; size < good.size(); ++size)
    CHECK(problem_of({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}).starts_with("the PNM "));
  CHECK(problem_of({good.begin(), good.end() - 1}) == "the PNM is truncated: got 16 bytes, expected 17");
  for (const char* header : {"P5 0 2 255\n", "P5 3 65536 255\n", "P5 3 2 0\n", "P5 3 2 65536\n", "P5 3 x 255\n",
                             "P5 18446744073709551619 2 255\n"})
    CHECK(problem_of(file_of(header, {1, 2, 3, 4, 5, 6}, false)).find("expected width, height") != std::string::npos);
  CHECK(problem_of(file_of("P2 3 2 255\n", {}, false)).find("does not begin with P5 or P6") != std::string::npos);
  CHECK_THROWS_AS(static_cast<void>(mr::pnm(slow::view(good), {.limits = {.max_pixels = 5}})), mr::data_error);
  CHECK_THROWS_AS(static_cast<void>(mr::any_picture(mr::bytes())), mr::data_error);
}
