// Writes a small labelled data set of sounds, as tar shards: train-*.tar and val-*.tar, with the fields wav and cls.
//
//   make_tones tones             # 16 kHz, 16 bits, 0.7 to 1.3 s; every fourth file has two channels
//
// The classes are noise, a steady tone, a rising tone, a falling tone and two beeps, all of them with noise.
#include "command_line.hpp"

#include <millrace/base/random.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include <cmath>
#include <filesystem>
#include <numbers>

namespace mr = millrace;

namespace {

constexpr std::uint32_t rate = 16'000, classes = 5;

void append(std::string& file, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i, number >>= 8) file += static_cast<char>(number & 255);
}

/// Returns a WAV file of a sound; all channels are the same.
std::string wav_of(std::uint32_t kind, std::uint32_t channels, mr::rng& rng) {
  const auto frames = static_cast<std::uint32_t>(rng.between(11'200, 20'800));
  const double pitch = rng.uniform(400, 1'600), volume = rng.uniform(0.05, 0.4), noise = rng.uniform(0.005, 0.05);
  std::string file = "RIFF";
  append(file, 36 + 2 * channels * frames, 4);
  file += "WAVEfmt ";
  append(file, 16, 4);
  append(file, 1 | channels << 16, 4);   // PCM
  append(file, rate, 4);
  append(file, 2 * channels * rate, 4);
  append(file, 2 * channels | 16 << 16, 4);
  file += "data";
  append(file, 2 * channels * frames, 4);
  double phase = 0;
  for (std::uint32_t i = 0; i < frames; ++i) {
    const double part = static_cast<double>(i) / frames;
    const double change = kind == 2 ? part - 0.5 : kind == 3 ? 0.5 - part : 0;
    phase += 2 * std::numbers::pi * pitch * std::exp2(2 * change) / rate;
    const bool silent = kind == 0 || (kind == 4 && std::fmod(part, 0.5) > 0.25);
    const double sample = (silent ? 0 : volume * std::sin(phase)) + rng.normal(0, kind == 0 ? 0.1 : noise);
    const double bounded = std::fmax(-1, std::fmin(1, sample));
    const auto value = static_cast<std::uint64_t>(std::lround(32'767 * bounded));
    for (std::uint32_t c = 0; c < channels; ++c) append(file, value, 2);
  }
  return file;
}

void write(const std::string& pattern, std::uint64_t samples, std::uint64_t shards, std::uint64_t seed) {
  mr::shard_writer out({.pattern = pattern, .max_samples = (samples + shards - 1) / shards});
  for (std::uint64_t i = 0; i < samples; ++i) {
    mr::rng rng({.seed = seed, .sample = i});
    const auto kind = static_cast<std::uint32_t>(rng.below(classes));
    out.write(std::to_string(i), {{"wav", wav_of(kind, i % 4 == 3 ? 2 : 1, rng)}, {"cls", std::to_string(kind)}});
  }
  out.close();
}

void make(command_line& args) {
  const auto samples = args.number("--samples", std::uint64_t{800});
  const auto shards = args.number("--shards", std::uint64_t{8});
  const auto seed = args.number("--seed", std::uint64_t{1});
  const auto folders = args.rest();
  if (folders.size() != 1 || samples < 8 || shards < 1) args.refuse("expected one folder, 8 samples and one shard");
  std::filesystem::create_directories(folders[0]);
  write(folders[0] + "/train-%04d.tar", samples, shards, seed);
  write(folders[0] + "/val-%04d.tar", samples / 4, 2, seed + 1);
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv, "usage: make_tones FOLDER [--samples N] [--shards N] [--seed N]"}, make);
}
