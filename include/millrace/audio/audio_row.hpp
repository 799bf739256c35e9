// Rows of a batch from audio plans: i16 instead of f32, several channels, and rows of varying length.
//
//   struct example { mr::ragged_audio<> speech; mr::audio_row<std::int16_t, 2> stereo; };
//   example prepare(const mr::record& r, mr::rng& rng) {
//     return {mr::ragged_audio<>(mr::wav(r["speech.wav"]).mono(), {.max_length = 20 * 16'000}),
//             mr::wav(r["music.wav"]).random_crop(2.0, rng)};
//   }
//
//   auto& [speech, stereo] = b;     // f32 [B, longest of the batch] with i32 [B], and i16 [B, frames, 2]
//
// An audio_row<T> is f32 or i16 [frames], an audio_row<T, 2> is [frames, channels], interleaved. A ragged_audio is a
// row of varying length (item/tensor/ragged.hpp); its length is a number of frames.
// Rows of one channel need a plan of one channel: call mono() or channel(). All rows of an audio_row column must have
// the same number of frames: call random_crop(), or pad() and crop().
// Errors: data_error if the plan has several channels and the row has one channel; for ragged rows, also the errors of
// ragged().
// Threads: not synchronized. Lifetime: a row keeps the bytes of its file alive, as audio does.
#pragma once

#include <millrace/base/version.hpp>

#include <millrace/audio/audio.hpp>
#include <millrace/item/tensor/ragged.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

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
  /// Decodes into `row`, which has the length of this row. Throws the errors of audio::render().
  void render(std::span<T> row, scratch& s) const { row_.render(row, s); }

 private:
  ragged_options<T> options_;
  audio_row<T, Rank> row_;
  std::array<std::size_t, Rank> shape_;
};

}}   // namespace millrace
