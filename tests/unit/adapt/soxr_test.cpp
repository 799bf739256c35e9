#include <millrace/adapt/soxr.hpp>
#include <millrace/audio/wav.hpp>

#include "../audio/wav_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numbers>

namespace mr = millrace;

namespace {

/// Tones of 300 and 2,100 Hz as a file of f32.
std::string tones(std::uint32_t rate, std::size_t frames, std::size_t channels = 1) {
  std::string data;
  for (std::size_t i = 0; i < frames; ++i)
    for (std::size_t c = 0; c < channels; ++c) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / rate;
      const auto v = static_cast<float>(0.4 * std::sin(300 * angle) + 0.3 * std::cos(2'100 * angle + double(c)));
      data += slow::number(std::bit_cast<std::uint32_t>(v), 4);
    }
  return slow::wav_file({.coding = slow::f32, .channels = channels, .rate = rate}, data);
}

float difference(const mr::tensor<float, 2>& a, const mr::tensor<float, 2>& b, std::size_t b_first) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::fabs(a.span()[i] - b.span()[b_first * b.shape()[1] + i]));
  return most;
}

}  // namespace

TEST_CASE("resampled tones are the same tones, and have the samples of soxr_oneshot()") {
  for (const auto& [from, to] :
       {std::pair{44'100U, 16'000U}, {8'000U, 48'000U}, {22'050U, 16'000U}, {16'000U, 16'001U}})
    for (const auto quality : {mr::soxr_quality::high, mr::soxr_quality::very_high}) {
      const std::size_t frames = 30'000;
      const std::string file = tones(from, frames);
      const mr::audio a = mr::wav(mr::bytes::borrowed(file)).resample(to, mr::soxr(quality));
      const auto count = static_cast<std::size_t>(std::ceil(static_cast<double>(frames) * to / from));
      REQUIRE(a.frames() == count);
      const mr::tensor<float, 2> all = a.samples(), in = mr::wav(mr::bytes::borrowed(file)).samples();
      std::vector<float> expected(count);
      std::size_t done = 0;
      const soxr_quality_spec_t accuracy = soxr_quality_spec(static_cast<unsigned>(quality), 0);
      REQUIRE_FALSE(soxr_oneshot(from, to, 1, in.data(), frames, nullptr, expected.data(), count, &done, nullptr,
                                 &accuracy, nullptr));
      float other = 0, wrong = 0;
      for (std::size_t i = 0; i < done; ++i) other = std::max(other, std::fabs(all(i, 0) - expected[i]));
      for (std::size_t i = 2'000; i < count - 2'000; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / to;
        const double tone = 0.4 * std::sin(300 * angle) + 0.3 * std::cos(2'100 * angle);
        wrong = std::max(wrong, static_cast<float>(std::fabs(all(i, 0) - tone)));
      }
      CHECK(count - done <= 1);
      CHECK(other == 0);
      CHECK(wrong < 3e-5F);
    }
}

TEST_CASE("a crop of resampled audio is the crop of the complete resampled file") {
  mr::rng random({.seed = 10});
  float most = 0;
  for (const auto& [from, to] : {std::pair{44'100U, 16'000U}, {8'000U, 44'100U}, {48'000U, 16'000U}}) {
    const std::string file = tones(from, 50'000, 2);
    const mr::audio a = mr::wav(mr::bytes::borrowed(file)).resample(to, mr::soxr());
    const mr::tensor<float, 2> all = a.samples();
    for (int round = 0; round < 20; ++round) {
      const std::size_t first = random.below(a.frames() - 10), count = random.below(a.frames() - first) + 1;
      most = std::max(most, difference(a.crop_frames(first, count).samples(), all, first));
    }
  }
  CHECK(most < 1e-5F);
}

TEST_CASE("thousands of channels are resampled if the limit allows them") {
  const std::string file = tones(8'000, 50, 5'000);
  const mr::audio a = mr::wav(mr::bytes::borrowed(file), {.limits = {.max_channels = 5'000}});
  const mr::tensor<float, 2> all = a.resample(4'000, mr::soxr(mr::soxr_quality::quick)).samples();
  const mr::tensor<float, 2> one = a.channel(4'999).resample(4'000, mr::soxr(mr::soxr_quality::quick)).samples();
  REQUIRE(all.shape() == std::array<std::size_t, 2>{25, 5'000});
  bool equal = true;
  for (std::size_t i = 0; i < 25; ++i) equal = equal && all(i, 4'999) == one(i, 0);
  CHECK(equal);
}
