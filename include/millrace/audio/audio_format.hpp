// The interfaces between an audio plan (audio.hpp), the formats of files, and libraries that resample.
//
//   constexpr mr::detail::audio_format format{.name = "wav", .read = read_samples, .reads_parts = true};
//   return mr::audio(std::move(data), {.format = &format, .header = header, .limits = options.limits});
//
// Samples are interleaved: a frame has one sample of each channel. A sample of f32 is in [-1, 1), except in files of
// floating-point numbers. Rates are frames per second.
// Errors: a format throws data_error, with its name as the stage, if the samples are damaged. Threads: the functions of
// a format and of a resampler may be called by several threads, each with its own scratch.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// Limits for data that may be damaged or malicious. The limits are checked before memory is allocated.
struct audio_limits {
  std::uint64_t max_frames = std::uint64_t{1} << 28;   ///< frames of a file, and of the result: 93 minutes at 48 kHz
  std::uint64_t max_channels = 64;
};

/// The properties of an audio file, as declared in its header.
struct audio_header {
  std::uint32_t rate = 0;   ///< frames per second
  std::size_t channels = 0;
  std::uint64_t frames = 0;
};

/// The task of an audio_resampler: resamples `in` to `out`. The signal is zero after the end of `in`.
struct resample_task {
  std::uint32_t from = 0, to = 0;   ///< rates
  std::size_t channels = 0;
  std::span<const float> in{};   ///< interleaved
  std::span<float> out{};        ///< interleaved; frame k is the signal at the time `k / to`, in seconds
};

/// A library for audio::resample(), such as mr::soxr of adapt/soxr.hpp.
struct audio_resampler {
  void (*run)(const resample_task& task, unsigned quality, scratch& s) = nullptr;
  unsigned quality = 0;   ///< is passed to run()
  /// The number of frames before and after an output frame that affect this frame, at the lower of the two rates.
  std::size_t reach = 0;
};

namespace detail {

struct audio_file;

/// The functions of a format.
struct audio_format {
  /// The part of a file to decode.
  struct part {
    const bytes* data;
    const audio_file* file;
    std::uint64_t first_frame;
  };

  const char* name = "";   ///< the stage in errors
  /// Decodes samples.size() / channels frames, which are inside the file.
  void (*read)(const part& p, std::span<float> samples, scratch& s) = nullptr;
  /// Same as read(), but writes i16; null if this is not faster than a conversion from f32.
  void (*read_i16)(const part& p, std::span<std::int16_t> samples, scratch& s) = nullptr;
  bool reads_parts = false;   ///< whether several short reads cost only as much as one long read
};

/// An audio file whose header has been read.
struct audio_file {
  const audio_format* format = nullptr;
  audio_header header{};
  audio_limits limits{};
  std::uint64_t data_at = 0;   ///< offset of the samples; only the format uses it
  unsigned coding = 0;         ///< type of the samples; only the format uses it
};

}   // namespace detail

}}   // namespace millrace
