// A libFuzzer target: WAV files, as complete and as cropped audio, against a slow reader. fuzz.py builds and runs it.
#include <millrace/audio/wav.hpp>

#include "../../unit/audio/wav_files.hpp"
#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <optional>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

struct slow_wav {
  slow::coding coding = slow::u8;
  std::size_t channels = 0;
  std::uint64_t rate = 0;
  std::string data{};
};

std::optional<slow::coding> coding_of(const std::string& format) {
  std::uint64_t tag = slow::number_at(format, 0, 2);
  const std::uint64_t bits = slow::number_at(format, 14, 2);
  if (tag == 0xfffe) {
    if (format.size() < 40) return std::nullopt;
    if (format.substr(26, 14) != std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14)) return std::nullopt;
    tag = slow::number_at(format, 24, 2);
  }
  for (const slow::coding c : slow::all_codings)
    if (tag == (c >= slow::f32 ? 3 : 1) && bits == 8 * slow::bytes_of_coding[c]) return c;
  return std::nullopt;
}

/// The last fmt chunk before the data, and the data. Every fmt chunk must be valid.
std::optional<slow_wav> read_slowly(const std::string& file) {
  const bool wide = file.starts_with("RF64") || file.starts_with("BW64");
  if (file.size() < 12 || (!wide && !file.starts_with("RIFF")) || file.substr(8, 4) != "WAVE") return std::nullopt;
  std::optional<slow_wav> wav;
  std::optional<std::uint64_t> wide_bytes;
  for (std::string rest = file.substr(12); rest.size() >= 8;) {
    const std::string name = rest.substr(0, 4);
    std::uint64_t size = slow::number_at(rest, 4, 4);
    rest.erase(0, 8);
    if (name == "data") {
      if (!wav || (wide && size == 0xffffffff && !wide_bytes)) return std::nullopt;
      if (wide && size == 0xffffffff) size = *wide_bytes;
      else if (!wide && size >= 0x7ffff000 && slow::number_at(file, 4, 4) >= 0x7ffff000) size = rest.size();
      if (size > rest.size()) return std::nullopt;
      const std::size_t frame = wav->channels * slow::bytes_of_coding[wav->coding];
      wav->data = rest.substr(0, static_cast<std::size_t>(size) / frame * frame);
      const bool in_range = wav->rate >= 1 && wav->rate <= 10'000'000 && wav->channels <= 64;
      return in_range ? wav : std::nullopt;
    }
    if (size > rest.size()) return std::nullopt;
    const std::string content = rest.substr(0, static_cast<std::size_t>(size));
    rest.erase(0, static_cast<std::size_t>(size + size % 2));
    if (name == "ds64" && size >= 16) wide_bytes = slow::number_at(content, 8, 8);
    if (name != "fmt ") continue;
    const auto coding = content.size() < 16 ? std::nullopt : coding_of(content);
    if (!coding) return std::nullopt;
    wav = slow_wav{.coding = *coding, .channels = slow::number_at(content, 2, 2),
                   .rate = slow::number_at(content, 4, 4)};
    if (wav->channels == 0 || slow::number_at(content, 12, 2) != wav->channels * slow::bytes_of_coding[*coding])
      return std::nullopt;
  }
  return std::nullopt;
}

bool equal(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  mr::rng random({.seed = 1});
  for (const coding c : all_codings)
    for (const bool extensible : {false, true}) {
      const wav_form form{.coding = c, .channels = 1 + random.below(3), .extensible = extensible};
      const std::string data = random_samples(form, 5, random);
      seeds.add(wav_file(form, data));
      const std::string unknown = number(0xffffffff, 4);
      seeds.add("RIFF" + unknown + "WAVE" + chunk("LIST", "abc") + format_chunk(form) + "data" + unknown + data);
      seeds.add("RF64" + unknown + "WAVE" + chunk("ds64", number(0, 8) + number(data.size(), 8)) + format_chunk(form) +
                "data" + unknown + data);
    }
}

void slow::check(std::span<const std::byte> input, draw choose) {
  const std::string file(text_of(input));
  const std::optional<slow_wav> expected = read_slowly(file);
  std::optional<mr::audio> audio;
  try {
    audio = mr::wav(mr::bytes::borrowed(input));
  } catch (const mr::data_error&) {
  }
  counters().count(audio.has_value());
  if (audio.has_value() != expected.has_value()) fail(audio ? "an invalid WAV was accepted" : "a WAV was refused");
  if (!audio) return;
  const std::vector<float> samples = samples_of(expected->coding, expected->data);
  expect(audio->channels() == expected->channels && audio->rate() == expected->rate, "another header");
  expect(audio->frames() == samples.size() / expected->channels, "another length");
  const std::size_t first = choose.below(audio->frames() + 1), count = choose.below(audio->frames() - first + 1);
  const std::size_t channel = choose.below(audio->channels());
  const auto all = audio->samples(), part = audio->crop_frames(first, count).channel(channel).samples();
  for (std::size_t i = 0; i < samples.size(); ++i) expect(equal(all.span()[i], samples[i]), "another sample");
  for (std::size_t i = 0; i < count; ++i)
    expect(equal(part.span()[i], samples[(first + i) * expected->channels + channel]), "another crop");
  std::vector<std::int16_t> integers(samples.size());
  mr::scratch s;
  audio->render(integers, s);
  for (std::size_t i = 0; i < samples.size(); ++i) expect(integers[i] == as_i16(samples[i]), "another integer");
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"RIFF", "RF64", "BW64", "WAVE", "fmt ", "data", "ds64", "LIST",
                             std::string_view("\x10\0\0\0", 4), std::string_view("\x28\0\0\0", 4), "\xff\xff\xff\xff",
                             std::string_view("\1\0\1\0", 4), std::string_view("\3\0\2\0", 4), "\xfe\xff"})
      .change(data, size, max_size, 0);
}
