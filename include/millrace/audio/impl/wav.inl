// Definitions for wav.hpp.
#pragma once

#include <millrace/audio/wav.hpp>

#include <millrace/audio/sample_kernels.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/file_kind.hpp>
#include <millrace/base/text.hpp>
#include <millrace/item/record.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail { namespace wav_files {

enum coding : unsigned { u8, i16, i24, i32, f32, f64 };
inline constexpr std::size_t sample_bytes[] = {1, 2, 3, 4, 4, 8};

struct wav_error {
  std::string problem, advice;
};
inline constexpr const char* fetch_again = "Fetch the file again, or leave the sample out";

/// Returns whether the bytes begin with the signature of a WAV.
MILLRACE_INLINE bool is_wav(std::span<const std::byte> file) noexcept {
  if (file.size() < 12 || std::memcmp(file.data() + 8, "WAVE", 4) != 0) return false;
  for (const char* const mark : {"RIFF", "RF64", "BW64"})
    if (std::memcmp(file.data(), mark, 4) == 0) return true;
  return false;
}

/// The chunks of a file, which begins with the signature of a WAV.
class wav_reader {
 public:
  explicit wav_reader(std::span<const std::byte> file) noexcept : file_(file) {}

  audio_file read(const audio_limits& limits, const audio_format& format) const {
    const bool wide = text(0, 4) != "RIFF";   // RF64, BW64: sizes of 64 bits in ds64
    audio_file result{.format = &format, .limits = limits};
    std::optional<std::uint64_t> data_bytes_64;
    std::size_t block_bytes = 0;
    for (std::uint64_t at = 12; at + 8 <= file_.size();) {
      const std::string_view name = text(at, 4);
      std::uint64_t size = number(at + 4, 4);
      const std::uint64_t rest = file_.size() - at - 8;
      if (name == "data") {
        if (block_bytes == 0) fail("has no fmt chunk before its data chunk at byte " + std::to_string(at), fetch_again);
        if (wide && size == 0xffffffff) {
          if (!data_bytes_64)
            fail("has no ds64 chunk before its data chunk at byte " + std::to_string(at), fetch_again);
          size = *data_bytes_64;
        }
        if (!wide && is_unknown(size) && is_unknown(number(4, 4))) size = rest;
        if (size > rest)
          fail("is truncated: the data chunk at byte " + std::to_string(at) + " declares " + std::to_string(size) +
                   " bytes, but only " + std::to_string(rest) + " bytes follow",
               fetch_again);
        result.data_at = at + 8;
        result.header.frames = size / block_bytes;
        return result;
      }
      if (size > rest)
        fail("is truncated: the chunk at byte " + std::to_string(at) + " declares " + std::to_string(size) +
                 " bytes, but only " + std::to_string(rest) + " bytes follow",
             fetch_again);
      if (name == "ds64" && size >= 16) data_bytes_64 = number(at + 16, 8);
      if (name == "fmt ") block_bytes = read_format(at + 8, size, result);
      at += 8 + size + size % 2;
    }
    fail("has no data chunk: it ends at byte " + std::to_string(file_.size()), fetch_again);
  }

 private:
  [[noreturn]] static void fail(const std::string& problem, const std::string& advice) {
    throw wav_error{"the WAV " + problem, advice};
  }

  static bool is_unknown(std::uint64_t size) noexcept { return size >= 0x7ffff000; }

  std::string_view text(std::uint64_t at, std::size_t size) const noexcept {
    return {reinterpret_cast<const char*>(file_.data()) + at, size};
  }
  std::uint64_t number(std::uint64_t at, std::size_t size) const noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(file_[static_cast<std::size_t>(at) + i]);
    return value;
  }

  /// Reads a fmt chunk. Returns the size of a frame in bytes.
  std::size_t read_format(std::uint64_t at, std::uint64_t size, audio_file& result) const {
    if (size < 16)
      fail("has a header of " + std::to_string(size) + " bytes, expected at least 16" + place_of(at), fetch_again);
    std::uint64_t tag = number(at, 2);
    const std::uint64_t channels = number(at + 2, 2), block_bytes = number(at + 12, 2), bits = number(at + 14, 2);
    constexpr std::uint64_t extensible = 0xfffe;
    if (tag == extensible) {
      if (size < 40)
        fail("has an extensible header of " + std::to_string(size) + " bytes, expected at least 40" + place_of(at),
             fetch_again);
      const std::string_view guid_tail("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
      if (text(at + 26, 14) == guid_tail) tag = number(at + 24, 2);
    }
    result.coding = coding_of(tag, bits, at);
    result.header.rate = static_cast<std::uint32_t>(number(at + 4, 4));
    result.header.channels = static_cast<std::size_t>(channels);
    if (channels == 0 || block_bytes != channels * sample_bytes[result.coding])
      fail("has a damaged header: got frames of " + std::to_string(block_bytes) + " bytes, expected " +
               std::to_string(channels) + " channels * " + std::to_string(sample_bytes[result.coding]) + " bytes" +
               place_of(at),
           fetch_again);
    return static_cast<std::size_t>(block_bytes);
  }

  static std::string place_of(std::uint64_t format) {
    return " (fmt chunk at byte " + std::to_string(format - 8) + ")";
  }

  static unsigned coding_of(std::uint64_t tag, std::uint64_t bits, std::uint64_t at) {
    constexpr std::uint64_t pcm = 1, floats = 3;
    if (tag == pcm && bits == 8) return u8;
    if (tag == pcm && bits == 16) return i16;
    if (tag == pcm && bits == 24) return i24;
    if (tag == pcm && bits == 32) return i32;
    if (tag == floats && bits == 32) return f32;
    if (tag == floats && bits == 64) return f64;
    fail("has an unsupported coding: got format " + std::to_string(tag) + " of " + std::to_string(bits) +
             " bits, expected format 1 of 8, 16, 24 or 32 bits, or format 3 of 32 or 64 bits" + place_of(at),
         "Include millrace/adapt/sndfile.hpp and use mr::sndfile(), or convert the file to 16 bits");
  }

  std::span<const std::byte> file_;
};

MILLRACE_INLINE const std::byte* samples_of(const audio_format::part& p) noexcept {
  return p.data->data() + p.file->data_at +
         static_cast<std::size_t>(p.first_frame) * p.file->header.channels * sample_bytes[p.file->coding];
}

MILLRACE_INLINE void decode(unsigned coding, const std::byte* from, std::span<float> to) noexcept {
  switch (coding) {
    case u8:
      return convert_samples<std::uint8_t>(from, to,
                                           [](std::uint8_t v) { return 0x1p-7F * static_cast<float>(int{v} - 128); });
    case i16:
      return convert_samples<std::int16_t>(from, to, [](std::int16_t v) { return 0x1p-15F * static_cast<float>(v); });
    case i24: return convert_24_bits(from, to);
    case i32:
      return convert_samples<std::int32_t>(from, to, [](std::int32_t v) { return 0x1p-31F * static_cast<float>(v); });
    case f64: return convert_samples<double>(from, to, [](double v) { return static_cast<float>(v); });
    default: std::memcpy(to.data(), from, to.size_bytes());
  }
}

MILLRACE_INLINE void read(const audio_format::part& p, std::span<float> to, scratch&) {
  decode(p.file->coding, samples_of(p), to);
}

MILLRACE_INLINE void read_i16(const audio_format::part& p, std::span<std::int16_t> to, scratch&) {
  const std::byte* const from = samples_of(p);
  if (p.file->coding == i16) {
    std::memcpy(to.data(), from, to.size_bytes());
    return;
  }
  float part[1'024];   // any number of channels: parts need not end with a frame
  for (std::size_t at = 0; at < to.size(); at += std::size(part)) {
    const auto some = std::span(part).first(std::min(std::size(part), to.size() - at));
    decode(p.file->coding, from + at * sample_bytes[p.file->coding], some);
    store_samples(some, to.subspan(at, some.size()));
  }
}

inline constexpr audio_format format{.name = "wav", .read = read, .read_i16 = read_i16, .reads_parts = true};

}}   // namespace detail::wav_files

MILLRACE_INLINE detail::other_audio detail::other_audio_of(std::span<const std::byte> file,
                                                           const std::string& expected) {
  using namespace std::string_view_literals;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const file_kind kind = kind_of_file(
      {.front = file.first(std::min<std::size_t>(file.size(), 1'024)), .file_bytes = file.size()});
  std::string name(kind == file_kind::unknown ? ""sv : name_of(kind));
  if (text.starts_with("ID3") || text.starts_with("\xff\xfb") || text.starts_with("\xff\xf3")) name = "an MP3 file";
  if (text.starts_with("FORM") && text.substr(std::min<std::size_t>(8, text.size())).starts_with("AIF"))
    name = "an AIFF file";
  if (text.starts_with("RIFX")) name = "a RIFX file (big-endian)";
  if (file.empty()) return {expected + " was expected, but there are 0 bytes", "Fetch the file again"};
  if (name.empty()) {
    std::string start;
    for (const std::byte b : file.first(std::min<std::size_t>(file.size(), 8)))
      (start += ' ') += hex(std::to_integer<unsigned>(b), 2);
    return {expected + " was expected, but these " + std::to_string(file.size()) + " bytes begin with" + start,
            "Select the field that contains the audio"};
  }
  const bool is_audio = kind == file_kind::flac || kind == file_kind::ogg || name.starts_with("an MP3") ||
                        name.starts_with("an AIFF") || name.starts_with("a RIFX");
  return {expected + " was expected, but the bytes look like " + name,
          kind == file_kind::wav ? "Use mr::wav()"
          : is_audio             ? "Include millrace/adapt/sndfile.hpp and use mr::sndfile()"
                                 : "Fetch the file again, or select the field that contains the audio"};
}

MILLRACE_INLINE audio wav(bytes data, const wav_options& options) {
  const auto fail = [&data](const std::string& problem, const std::string& advice) {
    error_location at{.stage = "wav"};
    at.complete(detail::location_of(data));
    throw data_error(problem, advice, at);
  };
  detail::audio_file file;
  if (!detail::wav_files::is_wav(data)) {
    const detail::other_audio other = detail::other_audio_of(data, "a WAV");
    fail(other.message, other.advice);
  }
  try {
    file = detail::wav_files::wav_reader(data).read(options.limits, detail::wav_files::format);
  } catch (const detail::wav_files::wav_error& e) {
    fail(e.problem, e.advice);
  }
  return {std::move(data), file};
}

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
