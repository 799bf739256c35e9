#include <millrace/audio/audio.hpp>
#include <millrace/audio/wav.hpp>
#include <millrace/base/digest.hpp>

#include "wav_files.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

namespace mr = millrace;

namespace {

std::string problem_of(const std::string& file, const mr::wav_options& options = {}) {
  try {
    static_cast<void>(mr::wav(mr::bytes::borrowed(file), options));
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "wav");
    CHECK_FALSE(e.hint().empty());
    return e.message();
  }
  return "none";
}

std::vector<float> floats_of(const mr::audio& a) {
  const mr::tensor<float, 2> all = a.samples();
  return {all.span().begin(), all.span().end()};
}

}  // namespace

TEST_CASE("samples of every coding, as f32 and i16, are those of a slow decoder") {
  mr::rng random({.seed = 55});
  mr::scratch s;
  for (const slow::coding coding : slow::all_codings)
    for (const std::size_t channels : {1U, 2U, 3U, 7U})
      for (const bool extensible : {false, true})
        for (const std::size_t frames : {0U, 1U, 63U, 64U, 65U, 700U}) {
          const slow::wav_form form{.coding = coding, .channels = channels, .rate = 11'025, .extensible = extensible};
          const std::string data = slow::random_samples(form, frames, random);
          const std::string file = slow::wav_file(form, data);
          const mr::audio a = mr::wav(mr::bytes::borrowed(file));
          REQUIRE(a.rate() == 11'025);
          REQUIRE(a.channels() == channels);
          REQUIRE(a.frames() == frames);
          const std::vector<float> expected = slow::samples_of(coding, data);
          REQUIRE(floats_of(a) == expected);
          std::vector<std::int16_t> integers(frames * channels);
          a.render(integers, s);
          std::vector<std::int16_t> rounded;
          for (const float v : expected) rounded.push_back(slow::as_i16(v));
          REQUIRE(integers == rounded);
          if (coding == slow::i16 && frames > 0) REQUIRE(std::memcmp(integers.data(), data.data(), data.size()) == 0);
        }
}

TEST_CASE("files of thousands of channels are read if the limit allows them") {
  mr::rng random({.seed = 57});
  for (const slow::coding coding : {slow::u8, slow::f32}) {
    const slow::wav_form form{.coding = coding, .channels = 16'000};
    const std::string data = slow::random_samples(form, 2, random), file = slow::wav_file(form, data);
    CHECK(problem_of(file).find("and 16000 channels, expected") != std::string::npos);
    const mr::audio a = mr::wav(mr::bytes::borrowed(file), {.limits = {.max_channels = 16'000}});
    std::vector<std::int16_t> integers(32'000), expected;
    for (const float v : slow::samples_of(coding, data)) expected.push_back(slow::as_i16(v));
    mr::scratch s;
    a.render(integers, s);
    CHECK(integers == expected);
    CHECK(a.channel(15'999).samples().span()[1] == a.samples().span()[31'999]);
  }
}

TEST_CASE("extreme samples keep their meaning") {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> samples{1, -1, 0.99999F, 2, -2, infinite, -infinite, std::nanf(""), 0.5F / 32'768, -0.0F};
  std::string data;
  for (const float v : samples) data += slow::number(std::bit_cast<std::uint32_t>(v), 4);
  const std::string file = slow::wav_file({.coding = slow::f32}, data);
  const mr::audio a = mr::wav(mr::bytes::borrowed(file));
  mr::scratch s;
  std::vector<std::int16_t> integers(samples.size());
  a.render(integers, s);
  CHECK(integers == std::vector<std::int16_t>{32'767, -32'768, 32'767, 32'767, -32'768, 32'767, -32'768, 0, 0, 0});
  std::vector<float> same(samples.size());
  a.render(same, s);
  CHECK(std::memcmp(same.data(), samples.data(), sizeof(float) * samples.size()) == 0);
}

TEST_CASE("other chunks have no effect, and sizes may be unknown or 64 bits wide") {
  mr::rng random({.seed = 56});
  const slow::wav_form form{.channels = 2};
  const std::string data = slow::random_samples(form, 5, random);
  const std::vector<float> expected = slow::samples_of(slow::i16, data);
  const std::string fmt = slow::format_chunk(form), unknown = slow::number(0xffffffff, 4);
  const std::string wide = slow::chunk("ds64", slow::number(0, 8) + slow::number(20, 8) + slow::number(5, 8));
  for (const std::string& file :
       {slow::riff(slow::chunk("LIST", "odd") + fmt + slow::chunk("fact", "12345") + slow::chunk("data", data)),
        slow::riff(fmt + slow::chunk("data", data) + slow::chunk("LIST", "after") + "x"),
        slow::riff(fmt + slow::chunk("data", data + "abc")),
        "RIFF" + unknown + "WAVE" + fmt + "data" + unknown + data,
        "RIFF" + slow::number(0x7ffff024, 4) + "WAVE" + fmt + "data" + slow::number(0x7ffff000, 4) + data,
        "RF64" + unknown + "WAVE" + wide + fmt + "data" + unknown + data,
        "BW64" + unknown + "WAVE" + wide + fmt + "data" + unknown + data + "more",
        "BW64" + unknown + "WAVE" + wide + fmt + slow::chunk("data", data)}) {
    CAPTURE(problem_of(file));
    REQUIRE(floats_of(mr::wav(mr::bytes::borrowed(file))) == expected);
  }
}

TEST_CASE("damaged WAV files are errors that name the defect, its offset and the remedy") {
  const slow::wav_form form{.channels = 2};
  const std::string good = slow::wav_file(form, std::string(8, 'a'));
  CHECK(problem_of(good) == "none");
  CHECK(problem_of("") == "a WAV was expected, but there are 0 bytes");
  for (std::size_t size = 1; size < good.size(); ++size) {
    const std::string problem = problem_of(good.substr(0, size));
    CAPTURE(problem);
    CHECK((problem.starts_with("the WAV ") || problem.starts_with("a WAV was expected")));
  }
  CHECK(problem_of(good.substr(0, 50)) ==
        "the WAV is truncated: the data chunk at byte 36 declares 8 bytes, but only 6 bytes follow");
  CHECK(problem_of(good.substr(0, 30)) ==
        "the WAV is truncated: the chunk at byte 12 declares 16 bytes, but only 10 bytes follow");
  CHECK(problem_of(good.substr(0, 36)) == "the WAV has no data chunk: it ends at byte 36");
  CHECK(problem_of(slow::riff(slow::chunk("data", "ab"))) ==
        "the WAV has no fmt chunk before its data chunk at byte 12");
  CHECK(problem_of("RF64" + good.substr(4, 36) + slow::number(0xffffffff, 4) + "ab") ==
        "the WAV has no ds64 chunk before its data chunk at byte 36");
  CHECK(problem_of(slow::riff(slow::chunk("fmt ", "short") + slow::chunk("data", ""))) ==
        "the WAV has a header of 5 bytes, expected at least 16 (fmt chunk at byte 12)");
  const auto changed = [&](std::size_t at, std::uint64_t value, std::size_t size) {
    std::string file = good;
    file.replace(at, size, slow::number(value, size));
    return problem_of(file);
  };
  CHECK(changed(20, 7, 2).starts_with("the WAV has an unsupported coding: got format 7 of 16 bits, expected"));
  CHECK(changed(20, 0xfffe, 2) ==
        "the WAV has an extensible header of 16 bytes, expected at least 40 (fmt chunk at byte 12)");
  CHECK(changed(34, 12, 2).starts_with("the WAV has an unsupported coding: got format 1 of 12 bits"));
  CHECK(changed(32, 5, 2) ==
        "the WAV has a damaged header: got frames of 5 bytes, expected 2 channels * 2 bytes (fmt chunk at byte 12)");
  CHECK(changed(22, 0, 2).starts_with("the WAV has a damaged header"));
  const std::string unsupported = "the header of an audio file declares an unsupported format: got ";
  CHECK(changed(24, 0, 4).starts_with(unsupported + "0 frames per second"));
  CHECK(changed(24, 10'000'001, 4).starts_with(unsupported + "10000001 frames"));
  CHECK(problem_of(good, {.limits = {.max_channels = 1}}).find("and 2 channels, expected") != std::string::npos);
  CHECK(problem_of(good, {.limits = {.max_frames = 1}}) ==
        "an audio is too long: got 2 frames, expected at most 1");
}

TEST_CASE("another format is named, with the function that reads it") {
  using namespace std::string_literals;
  const auto hint_of = [](const std::string& file, const std::string& format) {
    try {
      static_cast<void>(mr::wav(mr::bytes::borrowed(file)));
    } catch (const mr::data_error& e) {
      CHECK(e.message() == "a WAV was expected, but the bytes look like " + format);
      return e.hint();
    }
    return "none"s;
  };
  const std::string sndfile = "Include millrace/adapt/sndfile.hpp and use mr::sndfile()", zeros(40, '\0');
  CHECK(hint_of("fLaC\0\0\0\x22"s + zeros, "a FLAC file") == sndfile);
  CHECK(hint_of("OggS\0\2"s + zeros, "an Ogg file") == sndfile);
  CHECK(hint_of("ID3\4\0"s + zeros, "an MP3 file") == sndfile);
  CHECK(hint_of("\xff\xfb\x90\x64"s + zeros, "an MP3 file") == sndfile);
  CHECK(hint_of("FORM\0\0\0\x40" "AIFF"s + zeros, "an AIFF file") == sndfile);
  CHECK(hint_of("RIFX\0\0\0\x40" "WAVE"s + zeros, "a RIFX file (big-endian)") == sndfile);
  CHECK(problem_of(zeros) == "a WAV was expected, but these 40 bytes begin with 00 00 00 00 00 00 00 00");
}

TEST_CASE("rows of frozen files have frozen digests") {
  mr::rng random({.seed = 2026});
  std::uint64_t digest = 0;
  mr::scratch s;
  for (const slow::coding coding : slow::all_codings) {
    const slow::wav_form form{.coding = coding, .channels = 3, .rate = 22'050};
    const std::string file = slow::wav_file(form, slow::random_samples(form, 5'000, random));
    const mr::audio a = mr::wav(mr::bytes::borrowed(file)).mono().random_crop(0.2, random).random_gain(random);
    std::vector<float> floats(a.frames());
    std::vector<std::int16_t> integers(a.frames());
    a.render(floats, s);
    a.render(integers, s);
    digest = mr::detail::digest_bytes(std::as_bytes(std::span(floats)), digest);
    digest = mr::detail::digest_bytes(std::as_bytes(std::span(integers)), digest);
  }
  CHECK(digest == 4470195344416552811U);
}
