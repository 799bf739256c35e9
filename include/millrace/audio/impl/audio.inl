// Definitions for audio.hpp.
#pragma once

#include <millrace/audio/audio.hpp>

#include <millrace/audio/sample_kernels.hpp>
#include <millrace/base/fixed_point.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/scratch.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail { namespace audio_plans {

/// Working memory of a worker.
struct buffers {
  std::vector<float> stored, input, resampled;
};

/// Returns 10^(decibels / 20) with 32 significant bits.
MILLRACE_INLINE double factor_of(double decibels) noexcept {
  constexpr double log2_of_10_over_20 = 0.16609640474436813;
  const auto exponent = static_cast<std::int64_t>(decibels * log2_of_10_over_20 * 0x1p32);
  constexpr std::int64_t one = std::int64_t{1} << 32;
  const std::int64_t integer = exponent >= 0 ? exponent / one : -((one - 1 - exponent) / one);
  double factor = static_cast<double>(fixed_exp2(exponent - integer * one)) * 0x1p-32;
  for (std::int64_t i = 0; i < integer; ++i) factor *= 2;
  for (std::int64_t i = integer; i < 0; ++i) factor *= 0.5;
  return factor;
}

MILLRACE_INLINE std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.resize(text.size() - 3);
  return text + " s";
}

template <class T>
void fill_zeros(std::span<T> samples) noexcept {
  std::fill(samples.begin(), samples.end(), T{});
}

}}   // namespace detail::audio_plans

MILLRACE_INLINE audio::audio(bytes data, const detail::audio_file& file)
    : data_(std::move(data)), guard_(data_), file_(file), rate_(file.header.rate) {
  const audio_header& h = file_.header;
  constexpr std::uint32_t most = 10'000'000;
  if (h.rate < 1 || h.rate > most || h.channels < 1 || h.channels > file_.limits.max_channels)
    throw data_error("the header of an audio file declares an unsupported format: got " + std::to_string(h.rate) +
                         " frames per second and " + std::to_string(h.channels) +
                         " channels, expected a rate from 1 to " + std::to_string(most) + " and 1 to " +
                         std::to_string(file_.limits.max_channels),
                     "Fetch the file again, or raise limits.max_channels", where());
  check_frames(h.frames);
  stored_.end = stored_.audible_end = static_cast<std::int64_t>(h.frames);
}

MILLRACE_INLINE error_location audio::where() const {
  error_location at{.stage = file_.format->name};
  at.complete(detail::location_of(data_));
  return at;
}

MILLRACE_INLINE void audio::check_frames(std::uint64_t frames) const {
  // The second limit keeps the arithmetic of positions at any two rates inside of 64 bits.
  if (const std::uint64_t most = std::min(file_.limits.max_frames, std::uint64_t{1} << 38); frames > most)
    throw data_error(
        "an audio is too long: got " + std::to_string(frames) + " frames, expected at most " + std::to_string(most),
        "Split the file before you write it into a shard, or raise limits.max_frames", where());
}

MILLRACE_INLINE std::uint64_t audio::frames_of(audio_length length) const {
  constexpr double most = 1e9;
  if (!(length.seconds >= 0 && length.seconds <= most))
    throw setup_error(
        "a length of audio is out of range: got " + std::to_string(length.seconds) + " s, expected 0 to 1000000000 s",
        "Pass seconds, or a std::chrono::duration", where());
  return static_cast<std::uint64_t>(length.seconds * rate_ + 0.5);
}

MILLRACE_INLINE std::array<std::size_t, 1> audio::shape() const {
  if (channels() != 1)
    throw data_error("an audio has " + std::to_string(channels()) + " channels, expected 1",
                     "Call .mono() or .channel(n), or use a column of mr::audio_row<float, 2> for all channels",
                     where());
  return {frames()};
}

MILLRACE_INLINE audio audio::mono() const {
  audio next = *this;
  if (channels() > 1) next.channel_ = mean_of_channels;
  return next;
}

MILLRACE_INLINE audio audio::channel(std::size_t number) const {
  if (number >= channels())
    throw data_error(
        "an audio has no channel " + std::to_string(number) + ": got " + std::to_string(channels()) + " channels",
        "Select a channel from 0 to channels() - 1; after mono() there is only channel 0", where());
  audio next = *this;
  if (channels() > 1) next.channel_ = number;
  return next;
}

MILLRACE_INLINE audio audio::crop(audio_length begin, audio_length length) const {
  return crop_frames(frames_of(begin), frames_of(length));
}

MILLRACE_INLINE audio audio::crop_frames(std::size_t first, std::size_t frames) const {
  using namespace detail::audio_plans;
  if (first > this->frames() || frames > this->frames() - first)
    throw data_error("an audio is shorter than its crop (begin + length): got " + std::to_string(this->frames()) +
                         " frames (" + seconds_text(seconds()) + "), expected at least " + std::to_string(first) +
                         " + " + std::to_string(frames),
                     "Call .pad(seconds) before the crop, or leave the sample out", where());
  audio next = *this;
  detail::audio_range& r = next.now();
  r.begin += static_cast<std::int64_t>(first);
  r.end = r.begin + static_cast<std::int64_t>(frames);
  r.audible_begin = std::clamp(r.audible_begin, r.begin, r.end);
  r.audible_end = std::clamp(r.audible_end, r.begin, r.end);
  return next;
}

MILLRACE_INLINE audio audio::center_crop(audio_length length) const {
  const std::uint64_t count = frames_of(length);
  return crop_frames(count < frames() ? (frames() - count) / 2 : 0, count);
}

MILLRACE_INLINE audio audio::random_crop(audio_length length, rng& random) const {
  const std::uint64_t count = frames_of(length);
  return crop_frames(count < frames() ? random.below(frames() - count + 1) : 0, count);
}

MILLRACE_INLINE audio audio::pad(audio_length length) const {
  const std::uint64_t count = frames_of(length);
  if (count <= frames()) return *this;
  check_frames(count);
  audio next = *this;
  next.now().end = next.now().begin + static_cast<std::int64_t>(count);
  return next;
}

MILLRACE_INLINE audio audio::gain(double decibels) const {
  if (!(decibels >= -90 && decibels <= 90))
    throw setup_error("a gain is out of range: got " + std::to_string(decibels) + " dB, expected -90 to 90",
                      "Pass the gain in decibels; 6.02 dB doubles the amplitude", where());
  audio next = *this;
  next.factor_ *= detail::audio_plans::factor_of(decibels);
  return next;
}

MILLRACE_INLINE audio audio::resample(std::uint32_t rate, const audio_resampler& with) const {
  if (rate == rate_) return *this;
  if (resampler_.run)
    throw setup_error(
        "an audio plan changes the rate twice: got " + std::to_string(rate) + " after " + std::to_string(rate_),
        "Call resample() once", where());
  if (rate < 1 || rate > 10'000'000)
    throw setup_error(
        "resample() has an invalid rate: got " + std::to_string(rate) + " frames per second, expected 1 to 10000000",
        "Pass a rate such as 16'000", where());
  if (!with.run)
    throw setup_error("resample() has no resampler: got an empty audio_resampler, expected a function",
                      "Pass a resampler, such as mr::soxr() of <millrace/adapt/soxr.hpp>", where());
  const std::uint64_t frames = (this->frames() * rate + rate_ - 1) / rate_;
  check_frames(frames);
  audio next = *this;
  next.resampler_ = with;
  next.rate_ = rate;
  next.resampled_.end = next.resampled_.audible_end = static_cast<std::int64_t>(frames);
  return next;
}

/// Decodes frames starting at `first`, counted from the beginning of the file. The file must contain all of them.
template <class T>
void audio::render_stored(std::uint64_t first, std::span<T> to, double factor, scratch& s) const {
  const detail::audio_format& format = *file_.format;
  const std::size_t stored_channels = file_.header.channels;
  const auto scale = static_cast<float>(factor);
  if (to.empty()) return;
  if (channels() == stored_channels && factor == 1) {
    if constexpr (std::is_same_v<T, float>) return format.read({&data_, &file_, first}, to, s);
    else if (format.read_i16) return format.read_i16({&data_, &file_, first}, to, s);
  }
  std::vector<float>& buffer = s.get<detail::audio_plans::buffers>().stored;
  const std::size_t frames = to.size() / channels();
  constexpr std::size_t cached_samples = 4'096;
  const std::size_t step = format.reads_parts ? std::max<std::size_t>(1, cached_samples / stored_channels) : frames;
  for (std::size_t at = 0; at < frames; at += step) {
    const std::size_t count = std::min(step, frames - at);
    if (buffer.size() < count * stored_channels) buffer.resize(count * stored_channels);
    std::span<float> part = std::span(buffer).first(count * stored_channels);
    format.read({&data_, &file_, first + at}, part, s);
    if (channels() != stored_channels)
      part = channel_ == mean_of_channels ? detail::mix_channels(part, stored_channels)
                                          : detail::select_channel(part, stored_channels, channel_);
    if (factor != 1) detail::scale_samples(part, scale);
    detail::store_samples(part, to.subspan(at * channels(), part.size()));
  }
}

template <class T>
void audio::render_resampled(std::span<T> to, scratch& s) const {
  const std::int64_t divisor = std::gcd(std::int64_t{file_.header.rate}, std::int64_t{rate_});
  const std::int64_t from = file_.header.rate / divisor, per = rate_ / divisor;   // `from` frames become `per` frames
  const detail::audio_range& r = resampled_;
  // At a multiple of `from` frames, the resampler starts with the phase of the complete signal.
  const auto reach = static_cast<std::int64_t>(resampler_.reach) * std::max<std::int64_t>(1, (from + per - 1) / per);
  const std::int64_t first = r.audible_begin / per * from + r.audible_begin % per * from / per;
  const std::int64_t in_begin = std::max<std::int64_t>(0, first - reach) / from * from;
  const std::int64_t out_begin = in_begin / from * per;
  const std::int64_t last = r.audible_end / per * from + r.audible_end % per * from / per + 1;
  const std::int64_t in_end = std::min<std::int64_t>(last + reach, stored_.end - stored_.begin);
  auto& [stored, input, resampled] = s.get<detail::audio_plans::buffers>();
  const auto samples = [this](std::int64_t frames) { return static_cast<std::size_t>(frames) * channels(); };

  const std::size_t length = samples(std::max<std::int64_t>(0, in_end - in_begin));
  if (input.size() < length) input.resize(length);
  const std::span<float> in = std::span(input).first(length);
  const std::int64_t begin = std::clamp(stored_.audible_begin - stored_.begin, in_begin, std::max(in_begin, in_end));
  const std::int64_t end = std::clamp(stored_.audible_end - stored_.begin, begin, std::max(begin, in_end));
  detail::audio_plans::fill_zeros(in.first(samples(begin - in_begin)));
  render_stored<float>(static_cast<std::uint64_t>(stored_.begin + begin),
                       in.subspan(samples(begin - in_begin), samples(end - begin)), 1, s);
  detail::audio_plans::fill_zeros(in.subspan(samples(end - in_begin)));
  const std::size_t out_length = samples(r.audible_end - out_begin);
  if (resampled.size() < out_length) resampled.resize(out_length);
  const std::span<float> out = std::span(resampled).first(out_length);
  resampler_.run({.from = file_.header.rate, .to = rate_, .channels = channels(), .in = in, .out = out},
                 resampler_.quality, s);
  const std::span<float> part = out.subspan(samples(r.audible_begin - out_begin));
  if (factor_ != 1) detail::scale_samples(part, static_cast<float>(factor_));
  detail::store_samples(part, to);
}

template <class T>
void audio::render_checked(std::span<T> row, scratch& s) const {
  const std::size_t wide = channels();
  if (row.size() != frames() * wide)
    throw setup_error("the row for an audio has the wrong size: got " + std::to_string(row.size()) +
                          " elements, expected " + std::to_string(frames()) + " frames * " + std::to_string(wide) +
                          " channels",
                      "Pass a row of that size", where());
  guard_.check(data_, "an audio", where());
  const detail::audio_range& r = now();
  const std::size_t before = static_cast<std::size_t>(r.audible_begin - r.begin) * wide;
  const std::size_t audible = static_cast<std::size_t>(r.audible_end - r.audible_begin) * wide;
  detail::audio_plans::fill_zeros(row.first(before));
  detail::audio_plans::fill_zeros(row.subspan(before + audible));
  const std::span<T> to = row.subspan(before, audible);
  if (to.empty()) return;
  if (resampler_.run) render_resampled(to, s);
  else render_stored(static_cast<std::uint64_t>(r.audible_begin), to, factor_, s);
}

MILLRACE_INLINE void audio::render(std::span<float> row, scratch& s) const { render_checked(row, s); }
MILLRACE_INLINE void audio::render(std::span<std::int16_t> row, scratch& s) const { render_checked(row, s); }

MILLRACE_INLINE tensor<float, 2> audio::samples() const {
  return detail::rendered<tensor<float, 2>>(*this, std::array{frames(), channels()});
}

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
