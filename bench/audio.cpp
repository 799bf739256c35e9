// audio: WAV files to rows of a batch, against memcpy; resampled rows against libsoxr alone
//
// A batch has 256 files of 1 s at 16 kHz with one channel, which exceed the caches. The time includes the plan of each
// file. memcpy copies as many bytes as a row reads and writes. Each measurement is followed by one of memcpy; the ratio
// is that of such pairs.
//
// "resampled" resamples files of 1 s from 44.1 to 16 kHz. libsoxr alone has its input as f32 in memory and writes into
// the row; the ratio is that of pairs. Without libsoxr-dev, this part is omitted.
#include "../tests/unit/audio/wav_files.hpp"
#include "harness.hpp"

#include <millrace/audio/wav.hpp>
#ifdef MILLRACE_BENCH_SOXR
#include <millrace/adapt/soxr.hpp>
#endif

#include <cstring>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

constexpr std::size_t files = 256, frames = 16'000;

mr::bytes wav_of(slow::coding coding, std::uint32_t rate = frames) {
  std::string data;
  const auto data_bytes = static_cast<std::uint32_t>(rate * slow::bytes_of_coding[coding]);
  for (std::uint32_t i = 0; i < data_bytes; ++i) data += static_cast<char>(i * 40'503 >> 9 & 63);
  return mr::bytes::owned(slow::wav_file({.coding = coding, .rate = rate}, data));
}

/// Returns the CPU seconds of `work`.
double seconds(const auto& work) {
  const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  work();
  return bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
}

template <class T>
void measure(bench::harness& run, const std::string& name, slow::coding coding, bench::goal goal) {
  std::vector<mr::bytes> sources;
  for (std::size_t i = 0; i < files; ++i) sources.push_back(wav_of(coding));
  std::vector<T> rows(files * frames);
  const std::size_t moved = frames * (slow::bytes_of_coding[coding] + sizeof(T));   // read and written for a row
  const std::size_t copied = files * moved / 2, pages = (copied + 4'095) / 4'096 * 4'096;
  std::vector<char> memory(2 * pages + 2'048, 'a');
  const char* const from = memory.data();
  char* const to = memory.data() + pages + 2'048;   // copies are slower between equal offsets in a page
  mr::scratch s;
  std::vector<double> shares;
  for (int round = run.quick() ? -11 : -51; round < 0; ++round) {
    const double own = seconds([&] {
      for (std::size_t i = 0; i < files; ++i)
        mr::wav(sources[i]).render(std::span(rows).subspan(i * frames, frames), s);
    });
    const double copies = seconds([&] {
      for (std::size_t i = 0; i < files; ++i) std::memcpy(to + i * moved / 2, from + i * moved / 2, moved / 2);
      asm volatile("" : : "r"(to) : "memory");   // keeps the copies, which are never read
    });
    shares.push_back(100 * copies / own);
  }
  run.result("audio_" + name, bench::median(shares), "%_of_memcpy", goal);
}

#ifdef MILLRACE_BENCH_SOXR
void measure_resampled(bench::harness& run) {
  constexpr std::size_t resampled_files = 32;
  constexpr std::uint32_t rate = 44'100;
  std::vector<mr::bytes> sources;
  std::vector<mr::tensor<float, 2>> inputs;
  for (std::size_t i = 0; i < resampled_files; ++i) {
    sources.push_back(wav_of(slow::i16, rate));
    inputs.push_back(mr::wav(sources.back()).samples());
  }
  std::vector<float> rows(resampled_files * frames);
  const auto row = [&](std::size_t i) { return std::span(rows).subspan(i * frames, frames); };
  const mr::audio_resampler resampler = mr::soxr();
  mr::scratch s;
  std::vector<double> shares;
  for (int round = run.quick() ? -11 : -51; round < 0; ++round) {
    const double own = seconds([&] {
      for (std::size_t i = 0; i < resampled_files; ++i)
        mr::wav(sources[i]).resample(frames, resampler).render(row(i), s);
    });
    const double alone = seconds([&] {
      for (std::size_t i = 0; i < resampled_files; ++i)
        resampler.run({.from = rate, .to = frames, .channels = 1, .in = inputs[i].span(), .out = row(i)},
                      resampler.quality, s);
    });
    shares.push_back(alone / own);
  }
  run.result("audio_resampled", bench::median(shares), "of_libsoxr", bench::at_least(0.9));
}
#endif

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "audio");
    measure<float>(run, "i16_to_f32", slow::i16, bench::at_least(80));
    measure<std::int16_t>(run, "i16_to_i16", slow::i16, bench::at_least(80));
    measure<float>(run, "f32_to_f32", slow::f32, bench::at_least(80));
    measure<float>(run, "i24_to_f32", slow::i24, {});
    measure<float>(run, "u8_to_f32", slow::u8, {});
#ifdef MILLRACE_BENCH_SOXR
    measure_resampled(run);
#endif
    return run.finish();
  });
}
