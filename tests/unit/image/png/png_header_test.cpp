#include <millrace/base/error.hpp>
#include <millrace/image/png/png_rows.hpp>

#include "png_files.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;
using mr::detail::png_color;

namespace {

std::vector<std::byte> small(unsigned color = 2, unsigned depth = 8) {
  return slow::make_png(slow::random_samples({.width = 5, .height = 4, .color = color, .depth = depth}, 1));
}

std::string message_of(std::span<const std::byte> file, const mr::detail::png_limits& limits = {}) {
  try {
    (void)mr::detail::read_png_header(file, limits);
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "png");
    CHECK_FALSE(e.hint().empty());
    return e.message();
  }
  return "no error";
}

/// The file with another IHDR, whose CRC is right.
std::vector<std::byte> with_head(std::vector<std::byte> file, std::size_t at, std::size_t value,
                                 std::size_t bytes = 1) {
  std::string head(slow::text_of_file(file).substr(16, 13));
  for (std::size_t i = 0; i < bytes; ++i) head[at + i] = static_cast<char>(value >> 8 * (bytes - 1 - i) & 255);
  const auto chunk = slow::file_of_text(slow::chunk_of("IHDR", head));
  std::copy(chunk.begin(), chunk.end(), file.begin() + 8);
  return file;
}

}  // namespace

TEST_CASE("the header contains the values of the chunks") {
  auto file = slow::make_png(slow::random_samples({.width = 70'000, .height = 2, .color = 3, .depth = 4,
                                                   .interlaced = true}, 1), {.colors = 9});
  file = slow::with_chunk(file, "tRNS", "\1\2\3", "IDAT");
  file = slow::with_chunk(file, "eXIf", "II*", "tRNS");
  file = slow::with_chunk(file, "tEXt", "whatever", "tRNS");
  const auto h = mr::detail::read_png_header(file);
  CHECK(h.width == 70'000);
  CHECK(h.height == 2);
  CHECK(h.depth == 4);
  CHECK(h.color == png_color::palette);
  CHECK(h.interlaced);
  CHECK(h.palette.size() == 27);
  CHECK(slow::text_of_file(h.transparency) == "\1\2\3");
  CHECK(h.transparency_intact);
  CHECK(slow::text_of_file(h.exif) == "II*");
  CHECK(slow::text_of_file(std::span(file).subspan(h.data_at + 4, 4)) == "IDAT");
  CHECK(h.channels() == 1);
  CHECK(h.filter_bytes() == 1);
  CHECK(h.row_bytes(3) == 2);
}

TEST_CASE("other files are recognized by their first bytes") {
  CHECK(message_of({}) == "a PNG begins with 89 50 4e 47 0d 0a 1a 0a, but these 0 bytes");
  CHECK(message_of(slow::file_of_text("\xff\xd8\xff")) ==
        "a PNG begins with 89 50 4e 47 0d 0a 1a 0a, but these 3 bytes begin with ff d8 ff");
  CHECK(message_of(slow::file_of_text("\x89PNG\n\x1a\n.....")) ==
        "a PNG begins with 89 50 4e 47 0d 0a 1a 0a, but these 12 bytes begin with "
        "89 50 4e 47 0a 1a 0a 2e");
}

TEST_CASE("an impossible IHDR is refused") {
  const auto file = small();
  CHECK(message_of(with_head(file, 0, 0, 4)) ==
        "the PNG's IHDR declares invalid sides: got 0 x 4 pixels, expected 1 to 2147483647 per side");
  CHECK(message_of(with_head(file, 4, 0x8000'0000, 4)) ==
        "the PNG's IHDR declares invalid sides: got 5 x 2147483648 pixels, expected 1 to 2147483647 per side");
  CHECK(message_of(with_head(file, 11, 1)) ==
        "the PNG's IHDR declares an unknown method: got compression 0, filter 1, interlace 0, expected 0, 0, 0 or 1");
  CHECK(message_of(with_head(file, 12, 2)) ==
        "the PNG's IHDR declares an unknown method: got compression 0, filter 0, interlace 2, expected 0, 0, 0 or 1");
  CHECK(message_of(with_head(file, 10, 9)) ==
        "the PNG's IHDR declares an unknown method: got compression 9, filter 0, interlace 0, expected 0, 0, 0 or 1");
  std::size_t possible = 0;
  for (std::size_t color = 0; color < 256; ++color)
    for (std::size_t depth = 0; depth < 256; ++depth) {
      const std::string message = message_of(with_head(with_head(file, 9, color), 8, depth));
      if (message == "no error") ++possible;
      else
        REQUIRE(message == "the PNG's IHDR declares an invalid pixel format: got color type " + std::to_string(color) +
                               " with " + std::to_string(depth) +
                               " bits per sample, expected a combination that PNG defines");
    }
  CHECK(possible == 15);
}

TEST_CASE("the size is limited before anything is allocated") {
  const auto file = with_head(with_head(small(), 0, 1'000'000, 4), 4, 1'000'000, 4);
  CHECK(message_of(file) ==
        "the PNG's header declares too many pixels: got 1000000 x 1000000 pixels, expected at most "
        "max_pixels = 178956970");
  CHECK(message_of(file, {.max_pixels = 1'000'000'000'000}) == "no error");
  CHECK(message_of(small(), {.max_pixels = 19}) ==
        "the PNG's header declares too many pixels: got 5 x 4 pixels, expected at most max_pixels = 19");
  CHECK(message_of(small(), {.max_pixels = 20}) == "no error");
}

TEST_CASE("chunks before the image data are checked") {
  const auto file = small(3, 8);
  const std::string text(slow::text_of_file(file));
  const auto changed = [&](std::size_t at, int by = 1) {
    auto changed = file;
    changed[at] ^= static_cast<std::byte>(by);
    return changed;
  };
  const std::size_t palette = text.find("PLTE");
  CHECK(message_of(changed(palette + 4)).starts_with("the PNG's chunk PLTE at byte 33 has a wrong CRC: got "));
  CHECK(message_of(changed(16)).starts_with("the PNG's chunk IHDR at byte 8 has a wrong CRC: got "));
  CHECK(message_of(changed(palette + 4), {.check_sums = false}) == "no error");
  CHECK(message_of(changed(palette, 0x80)) ==
        "the PNG has a chunk at byte 33 with an invalid name: got '\\xd0LTE'");
  CHECK(message_of(slow::with_chunk(file, "caNT", "be wrong", "IDAT")) == "no error");
  auto ancillary = slow::with_chunk(file, "tRNS", "abc", "IDAT");
  const std::size_t trns = slow::text_of_file(ancillary).find("tRNS");
  ancillary[trns + 5] ^= std::byte{1};
  CHECK(message_of(ancillary) == "no error");
  CHECK_FALSE(mr::detail::read_png_header(ancillary).transparency_intact);
  auto exif = slow::with_chunk(file, "eXIf", "abc", "IDAT");
  exif[slow::text_of_file(exif).find("eXIf") + 5] ^= std::byte{1};
  CHECK(mr::detail::read_png_header(exif).exif.empty());
  CHECK(message_of(slow::with_chunk(file, "CgBI", "abcd", "IDAT")) ==
        "the PNG has the critical chunk CgBI at byte " + std::to_string(text.find("IDAT") - 4) +
            ", which this decoder does not support");
  CHECK(message_of(slow::with_chunk(file, "tEXt", "abcd", "IHDR")) ==
        "the PNG's first chunk is tEXt, expected IHDR");
  CHECK(message_of(slow::with_chunk(file, "IDAT", "abcd", "IHDR")) ==
        "the PNG's first chunk is IDAT, expected IHDR");
  CHECK(message_of(slow::with_chunk(file, "IHDR", text.substr(16, 13), "PLTE")) ==
        "the PNG has two IHDR chunks, expected one");
  CHECK(message_of(slow::with_chunk(file, "IHDR", text.substr(16, 12), "IHDR")) ==
        "the PNG's IHDR has the wrong size: got 12 bytes, expected 13");
  CHECK(message_of(slow::with_chunk(file, "IEND", "", "IDAT")) == "the PNG has no image data before its IEND");
  CHECK(message_of(slow::with_chunk(file, "PLTE", "abc", "IDAT")) == "the PNG has two palettes");
  const auto plain = slow::file_of_text(text.substr(0, 33) + text.substr(text.find("IDAT") - 4));
  for (const std::size_t bytes : {0U, 4U, 771U})
    CHECK(message_of(slow::with_chunk(plain, "PLTE", std::string(bytes, 'a'), "IDAT")) ==
          "the PNG's palette has the wrong size: got " + std::to_string(bytes) +
              " bytes, expected 3 per color and at most 768");
  CHECK(message_of(slow::with_chunk(plain, "PLTE", std::string(768, 'a'), "IDAT")) == "no error");
  CHECK(message_of(slow::with_chunk(small(2), "PLTE", "abcd", "IDAT")) == "no error");
  CHECK(message_of(slow::with_chunk(small(0), "PLTE", "abcd", "IDAT")) == "no error");
}

TEST_CASE("a header that is cut anywhere is an error") {
  const auto file = slow::with_chunk(small(3, 8), "tEXt", "abcd", "IDAT");
  const std::size_t data = slow::text_of_file(file).find("IDAT") - 4;
  for (std::size_t cut = 8; cut < data + 8; ++cut) {
    const std::string message = message_of(std::span(file).first(cut));
    CAPTURE(cut);
    CAPTURE(message);
    REQUIRE((message == "the PNG ends after " + std::to_string(cut) + " bytes, before its image data" ||
             message.starts_with("the PNG ends inside its chunk ")));
  }
  CHECK(message_of(std::span(file).first(data + 8)) == "no error");
}
