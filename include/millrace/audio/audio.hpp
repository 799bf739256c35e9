// An `audio` is an audio file and a plan for it: crops, the mix of the channels, resampling, padding and gain.
//
//   mr::audio a = mr::wav(r["wav"]).mono().pad(1.0).random_crop(1.0, rng).random_gain(rng);
//   mr::audio b = mr::wav(r["wav"]).channel(0).resample(16'000, soxr).crop(0.5, 2.0);   // mr::soxr(): adapt/soxr.hpp
//   a.frames(), a.rate(), a.seconds();      // of the result
//   mr::tensor<float, 2> samples = a.samples();         // decodes now; a batch renders directly into its row instead
//
// Result: f32 [frames] of one channel. A frame consists of one sample of each channel. Samples of integer files are in
// [-1, 1), as in soundfile and torchaudio. Rows of i16 or of several channels are audio_row,
// rows of varying length are ragged_audio:
//
//   struct example { mr::ragged_audio<> speech; mr::audio_row<std::int16_t, 2> stereo; };
//   example prepare(const mr::record& r, mr::rng& rng) {
//     return {mr::ragged_audio<>(mr::wav(r["speech.wav"]).mono(), {.max_length = 20 * 16'000}),
//             mr::wav(r["music.wav"]).random_crop(2.0, rng)};
//   }
//
//   auto& [speech, stereo] = b;     // f32 [B, longest of the batch] with i32 [B], and i16 [B, frames, 2]
//
// Each call returns a new plan. Except for rounding, the result is the same as if each call changed the samples
// immediately, in the order of the calls. Nothing is decoded until the plan is rendered. Rendering decodes only the
// frames that the result needs.
// Lengths are seconds, or a std::chrono::duration, and are rounded to the nearest frame at the current rate. If files
// have different rates, resample them before a crop, so that all rows have the same number of frames.
// In a crop after resample(), each sample differs by less than 0.00001 from the same sample of the complete resampled
// file.
// Errors: data_error if the file is damaged, exceeds a limit, is shorter than a crop, or lacks a selected channel;
// setup_error for impossible arguments. Errors name shard and key. Threads: not synchronized. Copies share the file's
// bytes, which do not change.
// Lifetime: an `audio` keeps the memory block of its bytes alive. The memory of bytes::borrowed must outlive the
// `audio`. If render() detects that this memory was freed or changed, it throws setup_error.
// Cost: 16-bit files are rendered at about the speed of memcpy. For the cost of resampling, see adapt/soxr.hpp.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/base/version.hpp>
#include <millrace/item/borrowed_guard.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

// The interfaces between an audio plan (audio.hpp), the formats of files, and libraries that resample.
//
//   constexpr mr::detail::audio_format format{.name = "wav", .read = read_samples, .reads_parts = true};
//   return mr::audio(std::move(data), {.format = &format, .header = header, .limits = options.limits});
//
// Samples are interleaved: a frame has one sample of each channel. An f32 sample is in [-1, 1). Only samples of files
// that store floating-point numbers may be outside of this range. Rates are frames per second.
// Errors: a format throws data_error if the samples are damaged. The stage in this error is the name of the format.
// Threads: the functions of a format and of a resampler may be called by several threads, each with its own scratch.

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
  /// An output frame depends on the signal at most `reach` frames before and after this output frame. These frames are
  /// counted at the lower of the two rates.
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
  /// Decodes samples.size() / channels frames. The caller ensures that the file contains these frames.
  void (*read)(const part& p, std::span<float> samples, scratch& s) = nullptr;
  /// Same as read(), but writes i16; null if a conversion of the result of read() is as fast.
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

/// A length in seconds: a number or a std::chrono::duration.
struct audio_length {
  double seconds = 0;

  /// Creates a length of this number of seconds.
  constexpr audio_length(double s) noexcept : seconds(s) {}
  /// Converts a std::chrono::duration.
  template <class Duration>
    requires requires(const Duration& d) {
      Duration::period::den;
      d.count();
    }
  constexpr audio_length(const Duration& d) noexcept
      : seconds(static_cast<double>(d.count()) * static_cast<double>(Duration::period::num) /
                static_cast<double>(Duration::period::den)) {}
};

/// The range of audio::random_gain().
struct random_gain_options {
  double from_db = -6;
  double to_db = 6;
};

namespace detail {

/// A part of a signal, in frames. Frames outside of `audible_begin` to `audible_end` are zero.
struct audio_range {
  std::int64_t begin = 0, end = 0;
  std::int64_t audible_begin = 0, audible_end = 0;

  std::uint64_t frames() const noexcept { return static_cast<std::uint64_t>(end - begin); }
};

}   // namespace detail

/// mr::audio: an audio file and its plan.
class audio {
 public:
  using element = float;
  static constexpr const char* rendering = "decode";   ///< how reports name the rendering of rows of this type

  /// Creates a plan of a complete file. `file` describes the header of the file. Called by the functions of each
  /// format, such as wav().
  audio(bytes data, const detail::audio_file& file);

  /// Returns the number of frames of the result.
  std::size_t frames() const noexcept { return static_cast<std::size_t>(now().frames()); }
  /// Returns the number of channels of the result.
  std::size_t channels() const noexcept { return channel_ == all_channels ? file_.header.channels : 1; }
  /// Returns the number of frames per second of the result.
  std::uint32_t rate() const noexcept { return rate_; }
  /// Returns the duration of the result.
  double seconds() const noexcept { return static_cast<double>(frames()) / rate_; }
  /// Returns the file's header, which the plan does not change.
  const audio_header& header() const noexcept { return file_.header; }
  /// Returns the bytes of the file.
  const bytes& data() const noexcept { return data_; }

  /// Returns [frames]. Throws data_error if the result has several channels.
  std::array<std::size_t, 1> shape() const;

  /// Replaces the channels by their mean.
  audio mono() const;
  /// Selects a channel. Throws data_error if the audio has fewer channels.
  audio channel(std::size_t number) const;

  /// Crops to `length`, beginning at the time `begin`. Throws data_error if the crop is not inside the audio.
  audio crop(audio_length begin, audio_length length) const;
  /// Crops to `frames` frames, beginning at the frame with the number `first`. Throws the error of crop().
  audio crop_frames(std::size_t first, std::size_t frames) const;
  /// Crops to `length` in the middle. The number of the first frame is rounded down. Throws the error of crop().
  audio center_crop(audio_length length) const;
  /// Crops to `length` at a random frame; all positions are equally likely. Throws the error of crop().
  audio random_crop(audio_length length, rng& random) const;
  /// Appends zeros up to `length`; a longer audio does not change. Throws data_error if the result exceeds max_frames.
  audio pad(audio_length length) const;

  /// Amplifies by this number of decibels: 6.02 doubles the samples, -6.02 halves them. f32 samples may exceed the
  /// range -1 to 1; i16 samples saturate. Throws setup_error unless the number is from -90 to 90.
  audio gain(double decibels) const;
  /// Amplifies by a random number of decibels from options.from_db to options.to_db.
  audio random_gain(rng& random, const random_gain_options& options = {}) const {
    return gain(random.uniform(options.from_db, options.to_db));
  }

  /// Resamples to `rate` frames per second. The result has ceil(frames * rate / old rate) frames. If the audio already
  /// has this rate, returns the same plan. Throws setup_error if the plan already changes the rate, and data_error if
  /// the result exceeds audio_limits::max_frames. Cost: the cost of the resampler, see adapt/soxr.hpp.
  audio resample(std::uint32_t rate, const audio_resampler& with) const;

  /// Decodes into `row`, which has frames() * channels() elements; channels are interleaved. The bits depend only on
  /// the file and the plan. Throws setup_error if the row has another size, data_error if the file is damaged.
  void render(std::span<float> row, scratch& s) const;
  /// Decodes into a row of i16: samples are rounded to nearest and limited to the range of i16. The samples of 16-bit
  /// files do not change if the plan has no mono(), gain() or resample().
  void render(std::span<std::int16_t> row, scratch& s) const;

  /// Decodes now and returns the samples, [frames, channels]. Throws data_error if the file is damaged.
  tensor<float, 2> samples() const;

 private:
  static constexpr std::size_t all_channels = ~std::size_t{0}, mean_of_channels = ~std::size_t{0} - 1;

  const detail::audio_range& now() const noexcept { return resampler_.run ? resampled_ : stored_; }
  detail::audio_range& now() noexcept { return resampler_.run ? resampled_ : stored_; }
  error_location where() const;
  std::uint64_t frames_of(audio_length length) const;
  void check_frames(std::uint64_t frames) const;
  template <class T>
  void render_checked(std::span<T> row, scratch& s) const;
  template <class T>
  void render_stored(std::uint64_t first, std::span<T> to, double factor, scratch& s) const;
  template <class T>
  void render_resampled(std::span<T> to, scratch& s) const;

  bytes data_;
  detail::borrowed_guard guard_;
  detail::audio_file file_;
  detail::audio_range stored_, resampled_;   // the frames of the plan before and after resample()
  audio_resampler resampler_{};              // resampler_.run is null if the rate does not change
  std::uint32_t rate_ = 0;
  std::size_t channel_ = all_channels;
  double factor_ = 1;
};

// An audio_row<T> has the shape [frames]; T is float or std::int16_t. An audio_row<T, 2> has the shape [frames,
// channels], and its channels are interleaved. A ragged_audio is a row of varying length (item/tensor/ragged.hpp); its
// length is a number of frames. Rows of one channel need a plan of one channel: call mono() or channel(). All rows of
// an audio_row column must have the same number of frames: call random_crop(), or pad() and crop().
// Errors: data_error if the plan has several channels and the row has one channel; for ragged rows, also the errors of
// ragged().
// Threads: not synchronized. Lifetime: a row keeps the bytes of its file alive, as audio does.

/// An audio plan as a row of T: [frames], or with Rank 2 [frames, channels].
template <class T = float, std::size_t Rank = 1>
  requires((std::same_as<T, float> || std::same_as<T, std::int16_t>) && (Rank == 1 || Rank == 2))
class audio_row {
 public:
  using element = T;
  static constexpr const char* rendering = audio::rendering;

  /// Converts a plan.
  audio_row(audio plan) : plan_(std::move(plan)) {}

  /// Returns [frames] or [frames, channels]. Throws data_error if Rank is 1 and the plan has several channels.
  std::array<std::size_t, Rank> shape() const {
    if constexpr (Rank == 1) return plan_.shape();
    else return {plan_.frames(), plan_.channels()};
  }
  /// Returns the plan.
  const audio& plan() const noexcept { return plan_; }
  /// Decodes into `row`. Throws the errors of audio::render().
  void render(std::span<T> row, scratch& s) const { plan_.render(row, s); }

 private:
  audio plan_;
};

/// An audio plan as a row of varying length; see audio_row.
template <class T = float, std::size_t Rank = 1>
class ragged_audio {
 public:
  using element = T;
  static constexpr std::size_t rank = Rank;
  static constexpr const char* rendering = audio::rendering;

  /// Plans a row of at most `max_length` frames. Throws data_error if the plan is longer and `truncate` is not set.
  /// Throws data_error if Rank is 1 and the plan has several channels. Throws setup_error if an option is out of range.
  ragged_audio(audio plan, const ragged_options<T>& options)
      : options_(options),
        row_(plan.crop_frames(0, detail::ragged_length(plan.frames(), options))),
        shape_(row_.shape()) {
    shape_[0] = options_.max_length;
  }

  /// Returns the number of frames of this row.
  std::size_t length() const noexcept { return row_.plan().frames(); }
  /// Returns the options.
  const ragged_options<T>& options() const noexcept { return options_; }
  /// Returns the shape of the longest possible row.
  std::array<std::size_t, Rank> shape() const noexcept { return shape_; }
  /// Returns the plan.
  const audio& plan() const noexcept { return row_.plan(); }
  /// Decodes into `row`, which has space for length() frames. Throws the errors of audio::render().
  void render(std::span<T> row, scratch& s) const { row_.render(row, s); }

 private:
  ragged_options<T> options_;
  audio_row<T, Rank> row_;
  std::array<std::size_t, Rank> shape_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/audio/impl/audio.inl>
#endif
