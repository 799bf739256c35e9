// Resamples audio plans with libsoxr, the SoX resampler.
//
//   #include <millrace/adapt/soxr.hpp>                                  // link with -lsoxr
//   mr::audio a = mr::wav(r["wav"]).mono().resample(16'000, mr::soxr()).random_crop(1.0, rng);
//
// Opt-in: needs libsoxr (libsoxr-dev). With the same quality, soxr.resample() in Python returns the same audio samples.
// The result has ceil(frames * new rate / old rate) frames.
// Errors: io_error if libsoxr cannot allocate memory. Threads: any thread. Each call has its own resampler. Cost with
// `high`: about 1 ms for each second of audio at 44.1 kHz. In addition, each call computes a filter.
#pragma once

#if !__has_include(<soxr.h>)
#error "millrace: libsoxr is not installed: apt-get install libsoxr-dev"
#endif
#include <soxr.h>

#include <millrace/base/version.hpp>   // first, so that compiling with an older C++ standard prints a short error
#include <millrace/audio/audio.hpp>
#include <millrace/base/error.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The quality of a resampler. From `quick` to `very_high`, the filters are accurate to 8, 16, 16, 20 and 28 bits.
enum class soxr_quality : unsigned {
  quick = SOXR_QQ,
  low = SOXR_LQ,
  medium = SOXR_MQ,
  high = SOXR_HQ,
  very_high = SOXR_VHQ
};

namespace detail { namespace soxr_resamplers {

/// Zeros that are passed to libsoxr after the end of the signal, until libsoxr has returned all frames.
struct silence {
  std::vector<float> zeros = std::vector<float>(4'096);
};

inline void run(const resample_task& task, unsigned quality, scratch& s) {
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t accuracy = soxr_quality_spec(quality, 0);
  const soxr_runtime_spec_t threads = soxr_runtime_spec(1);
  soxr_error_t problem = nullptr;
  const std::unique_ptr<struct ::soxr, void (*)(soxr_t)> resampler(
      soxr_create(task.from, task.to, static_cast<unsigned>(task.channels), &problem, &io, &accuracy, &threads),
      soxr_delete);
  std::vector<float>& zeros = s.get<silence>().zeros;
  if (zeros.size() < task.channels) zeros.resize(task.channels);
  const std::size_t frames = task.out.size() / task.channels;
  const float* in = task.in.data();
  std::size_t count = task.in.size() / task.channels;
  for (std::size_t done = 0; done < frames && !problem;) {
    std::size_t read = 0, written = 0;
    problem = soxr_process(resampler.get(), in, count, &read, task.out.data() + done * task.channels, frames - done,
                           &written);
    done += written;
    in += read * task.channels;
    count -= read;
    if (count == 0) {
      in = zeros.data();
      count = zeros.size() / task.channels;
    }
  }
  if (problem)
    throw io_error(std::string("libsoxr cannot resample: ") + problem, "Check the sample rates, or free memory",
                   {.stage = "soxr"});
}

}}   // namespace detail::soxr_resamplers

/// Returns the resampler for audio::resample().
inline audio_resampler soxr(soxr_quality quality = soxr_quality::high) noexcept {
  return {.run = detail::soxr_resamplers::run, .quality = static_cast<unsigned>(quality), .reach = 1'024};
}

}}   // namespace millrace
