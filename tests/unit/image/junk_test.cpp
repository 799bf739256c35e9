// Bytes that do not belong in a JPEG, where decoders skip them: the same pixels and the same verdict everywhere.
#include <millrace/image/picture/picture.hpp>

#include "jpeg_recipes.hpp"
#include "junk_bytes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mr = millrace;

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
