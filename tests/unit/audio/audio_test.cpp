// Audio plans, compared with operations on complete signals.
#include <millrace/audio/audio.hpp>
#include <millrace/audio/wav.hpp>
#include <millrace/item/column/columns.hpp>

#include "wav_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>

namespace mr = millrace;

namespace {

/// A signal on which each operation runs immediately.
struct slow_audio {
  std::vector<float> samples{};   // interleaved
  std::size_t channels = 1;
  std::uint32_t rate = 16'000;

  std::size_t frames() const { return samples.size() / channels; }
  void crop(std::size_t first, std::size_t count) {
    samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(first * channels));
    samples.resize(count * channels);
  }
  void pad(std::size_t count) { samples.resize(std::max(samples.size(), count * channels)); }
  /// Channel `number`, or the mean.
  void select(std::size_t number, bool mean) {
    std::vector<float> one;
    for (std::size_t i = 0; i < frames(); ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < channels; ++c) sum += samples[i * channels + c];
      one.push_back(mean ? static_cast<float>(sum / static_cast<double>(channels)) : samples[i * channels + number]);
    }
    samples = one;
    channels = 1;
  }
  void scale(double factor) {
    for (float& v : samples) v *= static_cast<float>(factor);
  }
  void resample(std::uint32_t to);
};

/// Linear interpolation between neighbors.
void interpolate(const mr::resample_task& t, unsigned, mr::scratch&) {
  const auto at = [&](std::uint64_t frame, std::size_t c) {
    return frame * t.channels < t.in.size() ? t.in[frame * t.channels + c] : 0.0F;
  };
  for (std::size_t k = 0; k < t.out.size() / t.channels; ++k) {
    const std::uint64_t place = std::uint64_t{k} * t.from, frame = place / t.to;
    const float share = static_cast<float>(place % t.to) / static_cast<float>(t.to);
    for (std::size_t c = 0; c < t.channels; ++c)
      t.out[k * t.channels + c] = (1 - share) * at(frame, c) + share * at(frame + 1, c);
  }
}
constexpr mr::audio_resampler linear{.run = interpolate, .reach = 1};

void slow_audio::resample(std::uint32_t to) {
  std::vector<float> out((frames() * to + rate - 1) / rate * channels);
  mr::scratch unused;
  interpolate({.from = rate, .to = to, .channels = channels, .in = samples, .out = out}, 0, unused);
  samples = out;
  rate = to;
}

struct both {
  mr::audio plan;
  slow_audio slow;
};

void random_operation(both& b, mr::rng& random, bool& resampled, double& decibels) {
  const std::size_t frames = b.plan.frames();
  switch (random.below(8)) {
    case 0:
    case 1: {
      const std::size_t first = random.below(frames / 4 + 1), count = frames - first - random.below(frames / 4 + 1);
      b.plan = b.plan.crop_frames(first, count);
      return b.slow.crop(first, count);
    }
    case 2: {
      const std::size_t count = frames + random.below(300);
      b.plan = b.plan.pad(static_cast<double>(count) / b.plan.rate());
      return b.slow.pad(count);
    }
    case 3:
      if (b.plan.channels() == 1) return;
      b.plan = b.plan.mono();
      return b.slow.select(0, true);
    case 4: {
      const std::size_t number = random.below(b.plan.channels());
      b.plan = b.plan.channel(number);
      return b.slow.select(number, false);
    }
    case 5: {
      const double seconds = b.plan.seconds() * random.uniform(0.3, 1);
      const auto count = static_cast<std::size_t>(seconds * b.plan.rate() + 0.5);
      mr::rng same = random;
      b.plan = b.plan.random_crop(seconds, random);
      return b.slow.crop(same.below(frames - count + 1), count);
    }
    case 6:
      if (resampled) return;
      {
        constexpr std::uint32_t rates[] = {8'000, 44'100, 16'000, 7, 22'050};
        const std::uint32_t rate = rates[random.below(5)];
        if (frames * rate / b.plan.rate() > 20'000) return;
        resampled = true;
        b.plan = b.plan.resample(rate, linear);
        return b.slow.resample(rate);
      }
    default:
      if (decibels != 0) return;
      decibels = random.uniform(-20, 20);
      b.plan = b.plan.gain(decibels);
  }
}

}  // namespace

TEST_CASE("random plans have the samples of operations that run immediately") {
  mr::rng random({.seed = 1});
  mr::scratch s;
  int resampled_plans = 0;
  for (int round = 0; round < 600; ++round) {
    constexpr std::uint32_t rates[] = {16'000, 22'050, 44'100, 10};
    const slow::wav_form form{.coding = slow::all_codings[random.below(6)], .channels = random.below(4) + 1,
                              .rate = rates[random.below(4)]};
    const std::string data = slow::random_samples(form, random.below(random.below(20) == 0 ? 6'000 : 700), random);
    const std::string file = slow::wav_file(form, data);
    both b{.plan = mr::wav(mr::bytes::borrowed(file)),
           .slow = {.samples = slow::samples_of(form.coding, data), .channels = form.channels, .rate = form.rate}};
    bool resampled = false;
    double decibels = 0;
    for (std::size_t i = random.below(7); i > 0; --i) random_operation(b, random, resampled, decibels);
    resampled_plans += resampled ? 1 : 0;
    b.slow.scale(std::pow(10, decibels / 20));
    REQUIRE(b.plan.frames() == b.slow.frames());
    REQUIRE(b.plan.channels() == b.slow.channels);
    REQUIRE(b.plan.rate() == b.slow.rate);
    std::vector<float> row(b.slow.samples.size(), 7);
    b.plan.render(row, s);
    std::vector<std::int16_t> integers(row.size(), 7);
    b.plan.render(integers, s);
    // Gains and means are rounded in another order; everything else is equal.
    float difference = 0;
    bool rounded = true;
    for (std::size_t i = 0; i < row.size(); ++i) {
      difference = std::max(difference, std::fabs(row[i] - b.slow.samples[i]));
      rounded = rounded && integers[i] == slow::as_i16(row[i]);
    }
    REQUIRE(difference <= (decibels == 0 && !resampled ? 0 : 2e-5F));
    REQUIRE(rounded);
  }
  CHECK(resampled_plans > 100);
}

TEST_CASE("lengths are seconds or durations, and decibels are factors") {
  using namespace std::chrono_literals;
  const std::string file = slow::wav_file(std::vector<std::int16_t>(40'000, 8'192));
  const mr::audio a = mr::wav(mr::bytes::borrowed(file));
  CHECK(a.seconds() == 2.5);
  CHECK(a.crop(1s, 500ms).frames() == 8'000);
  CHECK(a.crop(0.5, 1).frames() == 16'000);
  CHECK(a.center_crop(1).frames() == 16'000);
  CHECK(a.pad(std::chrono::minutes(1)).frames() == 960'000);
  CHECK(a.pad(1).frames() == 40'000);
  CHECK(a.gain(0).samples().span()[0] == 0.25F);
  CHECK(a.gain(20).samples().span()[0] == doctest::Approx(2.5).epsilon(1e-7));
  CHECK(a.gain(-20).gain(-40).samples().span()[0] == doctest::Approx(0.00025).epsilon(1e-7));
  CHECK(a.gain(90).samples().span()[0] == doctest::Approx(0.25 * std::pow(10, 4.5)).epsilon(1e-7));
  CHECK(a.resample(16'000, {}).frames() == 40'000);   // nothing to do
}

TEST_CASE("resampled rows share the working memory of a worker, and no sample of another row remains in it") {
  static const float* input_of_task = nullptr;
  constexpr mr::audio_resampler observing{
      .run = [](const mr::resample_task& t, unsigned quality, mr::scratch& s) {
        input_of_task = t.in.data();
        interpolate(t, quality, s);
      },
      .reach = 1};
  const std::string loud = slow::wav_file(std::vector<std::int16_t>(40'000, 30'000)),
                    quiet = slow::wav_file(std::vector<std::int16_t>(3'000, 1'000));
  const mr::audio first = mr::wav(mr::bytes::borrowed(loud)).resample(8'000, observing);
  const mr::audio second = mr::wav(mr::bytes::borrowed(quiet)).pad(0.5).resample(12'000, observing);
  mr::scratch s;
  std::vector<float> row(first.frames());
  first.render(row, s);
  const float* const input = input_of_task;
  const std::vector<float> others(40'000);   // would get the memory of an input that was freed
  first.render(row, s);
  CHECK(input_of_task == input);
  row.resize(second.frames());
  second.render(row, s);
  CHECK(input_of_task == input);
  const auto alone = second.samples();
  CHECK(std::equal(row.begin(), row.end(), alone.span().begin()));
}

TEST_CASE("random crops begin at every frame, and gains fill their range") {
  const std::string file = slow::wav_file({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10);
  const mr::audio a = mr::wav(mr::bytes::borrowed(file));
  mr::rng random({.seed = 3});
  mr::scratch s;
  std::vector<int> begins(8);
  float least = 9, most = 0;
  std::vector<std::int16_t> row(3);
  for (int i = 0; i < 4'000; ++i) {
    a.random_crop(0.3, random).render(row, s);
    if (row[2] != row[0] + 2) FAIL("not consecutive");
    ++begins.at(static_cast<std::size_t>(row[0]));
    const float sample = a.random_gain(random, {.from_db = -20, .to_db = 0}).samples().span()[8] * 4'096;
    least = std::min(least, sample);
    most = std::max(most, sample);
  }
  for (const int count : begins) CHECK((count > 400 && count < 600));
  CHECK((least < 0.102F && least >= 0.1F && most > 0.99F && most < 1));
}

TEST_CASE("impossible calls are errors that name the remedy") {
  const std::string file = slow::wav_file(std::vector<std::int16_t>(4'000, 1));
  const mr::audio a = mr::wav(mr::bytes::borrowed(file), {.limits = {.max_frames = 8'000}});
  mr::rng random({.seed = 4});
  CHECK_THROWS_WITH_AS(static_cast<void>(a.random_crop(1, random)),
                       doctest::Contains("got 4000 frames (0.250 s), expected at least 0 + 16000"), mr::data_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(a.crop(0.2, 0.1)), doctest::Contains("3200 + 1600"), mr::data_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(a.crop_frames(1, ~std::size_t{0})), doctest::Contains(".pad(seconds)"),
                       mr::data_error);
  CHECK_THROWS_AS(static_cast<void>(a.crop(-1, 0.1)), mr::setup_error);
  CHECK_THROWS_AS(static_cast<void>(a.crop(0, std::nan(""))), mr::setup_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(a.pad(1)), doctest::Contains("got 16000 frames, expected at most 8000"),
                       mr::data_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(a.resample(48'000, linear)), doctest::Contains("got 12000 frames"),
                       mr::data_error);
  CHECK_THROWS_AS(static_cast<void>(a.resample(0, linear)), mr::setup_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(a.resample(8'000, {})), doctest::Contains("mr::soxr()"), mr::setup_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(a.resample(8'000, linear).resample(4'000, linear)),
                       doctest::Contains("twice"), mr::setup_error);
  CHECK_THROWS_AS(static_cast<void>(a.gain(91)), mr::setup_error);
  CHECK_THROWS_AS(static_cast<void>(a.channel(1)), mr::data_error);
  std::vector<float> row(5);
  mr::scratch s;
  CHECK_THROWS_WITH_AS(a.render(row, s), doctest::Contains("got 5 elements, expected 4000 frames * 1 channels"),
                       mr::setup_error);
}

TEST_CASE("a plan keeps its bytes alive, and detects borrowed bytes that changed") {
  auto file = std::make_unique<std::string>(slow::wav_file(std::vector<std::int16_t>(50, 16'384)));
  const mr::audio owned = mr::wav(mr::bytes::owned(*file)), borrowed = mr::wav(mr::bytes::borrowed(*file));
  file->back() = 'x';
  CHECK(owned.samples().span()[49] == 0.5F);
  CHECK_THROWS_WITH_AS(static_cast<void>(borrowed.samples()), doctest::Contains("the bytes of an audio changed"),
                       mr::setup_error);
}

namespace {

struct rows {
  mr::audio mono;
  mr::audio_row<std::int16_t, 2> stereo;
  mr::ragged_audio<> speech;
  mr::ragged_audio<std::int16_t, 2> wide;
};
using layout = mr::detail::columns<&rows::mono, &rows::stereo, &rows::speech, &rows::wide>;

}  // namespace

TEST_CASE("plans are columns: fixed and ragged, f32 and i16, one and several channels") {
  const slow::wav_form form{.coding = slow::i16, .channels = 2};
  mr::rng random({.seed = 5});
  for (const bool fixed : {false, true}) {
    std::vector<std::string> data, files;
    std::vector<rows> items;
    for (const std::size_t frames : {100U, 40U, 70U, 0U}) {
      data.push_back(slow::random_samples(form, frames, random));
      files.push_back(slow::wav_file(form, data.back()));
    }
    for (const std::string& file : files) {
      const mr::audio a = mr::wav(mr::bytes::owned(file)), same = a.pad(0.1).crop_frames(0, 30);
      items.push_back({same.channel(1), same,
                       {a.channel(0), {.max_length = 90, .padding = -7, .truncate = true, .fixed = fixed}},
                       {a, {.max_length = 128, .fixed = fixed, .multiple_of = 16}}});
    }
    layout l;
    l.fix_shapes(items[0], items.size());
    std::vector<std::byte> slot(l.batch_bytes(), std::byte{0xaa});
    mr::scratch s;
    for (std::size_t i = items.size(); i-- > 0;) {
      l.check_shapes(items[i]);
      const rows* const one[] = {&items[i]};
      l.render(one, slot.data(), i, s);
    }
    const mr::detail::slot_extent extent = l.close(slot.data(), items.size());
    const layout::delivered b{.base = slot.data(), .rows = items.size(), .extent = extent};
    const auto [mono, stereo, speech, wide] = l.views(b);
    REQUIRE(mono.shape == std::array<std::size_t, 2>{4, 30});
    REQUIRE(stereo.shape == std::array<std::size_t, 3>{4, 30, 2});
    REQUIRE(speech.values.shape == std::array<std::size_t, 2>{4, 90});
    REQUIRE(wide.values.shape == std::array<std::size_t, 3>{4, fixed ? 128U : 112U, 2});
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::vector<float> samples = slow::samples_of(slow::i16, data[i]);
      const auto sample = [&](std::size_t frame, std::size_t c, float padding) {
        return 2 * frame < samples.size() ? samples[2 * frame + c] : padding;
      };
      REQUIRE(speech.lengths[i] == static_cast<std::int32_t>(std::min<std::size_t>(samples.size() / 2, 90)));
      REQUIRE(wide.lengths[i] == static_cast<std::int32_t>(samples.size() / 2));
      bool equal = true;
      for (std::size_t frame = 0; frame < 30; ++frame) {
        equal = equal && mono(i, frame) == sample(frame, 1, 0);
        for (const std::size_t c : {0U, 1U}) equal = equal && stereo(i, frame, c) == slow::as_i16(sample(frame, c, 0));
      }
      for (std::size_t frame = 0; frame < 90; ++frame)
        equal = equal && speech.values(i, frame) == sample(frame, 0, -7);
      for (std::size_t frame = 0; frame < wide.values.shape[1]; ++frame)
        for (const std::size_t c : {0U, 1U})
          equal = equal && wide.values(i, frame, c) == slow::as_i16(sample(frame, c, 0));
      REQUIRE(equal);
    }
  }
  const std::string file = slow::wav_file(form, std::string(400, 'x'));
  const mr::audio a = mr::wav(mr::bytes::borrowed(file));
  CHECK_THROWS_WITH_AS(static_cast<void>(a.shape()), doctest::Contains("has 2 channels, expected 1"), mr::data_error);
  CHECK_THROWS_WITH_AS(mr::ragged_audio<>(a, {.max_length = 100}), doctest::Contains("mr::audio_row<float, 2>"),
                       mr::data_error);
  CHECK_THROWS_WITH_AS(mr::ragged_audio<>(a.mono(), {.max_length = 99}),
                       doctest::Contains("got length 100, expected at most max_length 99"), mr::data_error);
  CHECK_THROWS_AS(mr::ragged_audio<>(a.mono(), {}), mr::setup_error);
}
