#include <millrace/adapt/sndfile.hpp>

#include "../../temporary_folder.hpp"
#include "../audio/wav_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace mr = millrace;

namespace {

constexpr int rate = 22'050;

/// A file of this format, by libsndfile.
std::string encoded(int format, const std::vector<float>& samples, int channels) {
  const temporary_folder folder;
  const std::string name = folder / "sound";
  SF_INFO info{.frames = 0, .samplerate = rate, .channels = channels, .format = format, .sections = 0, .seekable = 0};
  SNDFILE* const file = sf_open(name.c_str(), SFM_WRITE, &info);
  REQUIRE(file);
  const auto frames = static_cast<sf_count_t>(samples.size()) / channels;
  std::vector<int> integers;   // libsndfile scales floats by 32,767
  for (const float v : samples) integers.push_back(static_cast<int>(32'768 * v) * 65'536);
  CHECK(sf_writef_int(file, integers.data(), frames) == frames);
  sf_close(file);
  std::ifstream in(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A sum of tones; every value is a multiple of 2^-15.
std::vector<float> tones(std::size_t frames, int channels) {
  std::vector<float> samples;
  for (std::size_t i = 0; i < frames; ++i)
    for (int c = 0; c < channels; ++c) {
      const double t = static_cast<double>(i) / rate;
      const double v = 0.4 * std::sin(6.28 * (440 + 100 * c) * t) + 0.2 * std::sin(6.28 * 3'000 * t);
      samples.push_back(static_cast<float>(std::nearbyint(v * 32'768) / 32'768));
    }
  return samples;
}

struct format_case {
  const char* name;
  int format;
  float most;   // difference from the encoded samples
};
const std::vector<format_case> formats{
    {"FLAC, 16 bits", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 0}, {"FLAC, 24 bits", SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 0},
    {"AIFF", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 0},          {"WAV, mu-law", SF_FORMAT_WAV | SF_FORMAT_ULAW, 0.02F},
    {"WAV, 16 bits", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 0},   {"Vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 0.2F}};

}  // namespace

TEST_CASE("complete files, crops and channels of every format are those of libsndfile") {
  for (const format_case& f : formats)
    for (const int channels : {1, 2}) {
      INFO(std::string(f.name));
      const std::vector<float> samples = tones(30'000, channels);
      const std::string file = encoded(f.format, samples, channels);
      const mr::audio a = mr::sndfile(mr::bytes::borrowed(file));
      REQUIRE(a.rate() == rate);
      REQUIRE(a.frames() == 30'000);
      REQUIRE(a.channels() == static_cast<std::size_t>(channels));
      const mr::tensor<float, 2> all = a.samples();
      float difference = 0;
      for (std::size_t i = 0; i < samples.size(); ++i)
        difference = std::max(difference, std::fabs(all.span()[i] - samples[i]));
      CHECK(difference <= f.most);
      mr::rng random({.seed = 7});
      for (int round = 0; round < 20; ++round) {
        const std::size_t first = random.below(29'000), frames = random.below(30'000 - first) + 1;
        const std::size_t channel = random.below(a.channels());
        const mr::tensor<float, 2> part = a.crop_frames(first, frames).channel(channel).samples();
        float gap = 0;
        for (std::size_t i = 0; i < frames; ++i) gap = std::max(gap, std::fabs(part(i, 0) - all(first + i, channel)));
        REQUIRE(gap <= 1e-6F);
      }
    }
}

TEST_CASE("a plain WAV has the same samples as with wav()") {
  mr::rng random({.seed = 8});
  for (const slow::coding coding : slow::all_codings) {
    const slow::wav_form form{.coding = coding, .channels = 2};
    const std::string file = slow::wav_file(form, slow::random_samples(form, 1'000, random));
    const auto ours = mr::wav(mr::bytes::borrowed(file)).samples();
    const auto theirs = mr::sndfile(mr::bytes::borrowed(file)).samples();
    CHECK(std::equal(ours.span().begin(), ours.span().end(), theirs.span().begin(), theirs.span().end()));
  }
}

TEST_CASE("damaged files are errors that name the remedy") {
  const std::string good = encoded(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(20'000, 1), 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(mr::sndfile({})), doctest::Contains("there are 0 bytes"), mr::data_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(mr::sndfile(mr::bytes::borrowed("no audio, but a text of some length"))),
                       doctest::Contains("libsndfile cannot read the header"), mr::data_error);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(mr::sndfile(mr::bytes::borrowed(good), {.limits = {.max_frames = 19'999}})),
      doctest::Contains("got 20000 frames, expected at most 19999"), mr::data_error);
  std::size_t errors = 0, sizes = 0;
  for (std::size_t size = 0; size + 200 < good.size(); size += good.size() / 40, ++sizes) {
    const std::string part = good.substr(0, size);
    try {
      static_cast<void>(mr::sndfile(mr::bytes::borrowed(part)).samples());
    } catch (const mr::data_error& e) {
      CHECK(e.where().stage == "sndfile");
      ++errors;
    }
  }
  CHECK(errors == sizes);
  mr::rng random({.seed = 9});
  for (int round = 0; round < 300; ++round) {
    std::string file = good;
    for (int i = 0; i < 3; ++i) file[random.below(file.size())] = static_cast<char>(random.bits());
    try {
      static_cast<void>(mr::sndfile(mr::bytes::borrowed(file)).samples());
    } catch (const mr::data_error&) {
    }
  }
}
