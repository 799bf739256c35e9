// Audio in WAV files. The decoder is part of Millrace.
//
//   mr::audio a = mr::wav(r["wav"]).mono().random_crop(1.0, rng).random_gain(rng);
//   mr::tensor<float, 2> samples = mr::wav(mr::read_file("speech.wav")).samples();      // f32 [frames, channels]
//
// Files: RIFF, RF64 and BW64, with plain and extensible headers. Samples: integers of 8, 16, 24 and 32 bits, and
// floating-point numbers of 32 and 64 bits. A file may have any number of channels up to the limit. Integers are
// divided by 2^(bits - 1), as in soundfile and torchaudio. Samples of 32 and 64 bits are rounded to f32. Compressed
// samples (A-law, ADPCM, MP3) and other formats need adapt/sndfile.hpp.
// Chunks other than `fmt `, `ds64` and `data` have no effect. A program that writes to a pipe does not know the sizes
// when it writes the headers. Therefore a RIFF file may declare wrong sizes, such as 0xffffffff. If the declared sizes
// of the file and of its data are both at least 0x7ffff000, the samples end at the end of the file. An incomplete frame
// at the end of the samples is ignored.
// Errors: data_error if the bytes are not a WAV, are truncated or damaged, or exceed a limit. The error has shard, key
// and stage "wav", and its message contains an offset in the file. Threads, lifetime: the same rules as for `audio`.
// Cost of wav(): about 0.1 us; no allocation. Format: Multimedia Programming Interface and Data Specifications 1.0
// (RIFF), and ITU-R BS.2088 (BW64).
#pragma once

#include <millrace/base/version.hpp>

#include <millrace/audio/audio.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of wav().
struct wav_options {
  audio_limits limits{};
};

namespace detail {

/// The message and the advice of an error. other_audio_of() returns them for a file that does not have the expected
/// format; `expected` is the name of this format, such as "a WAV".
struct other_audio {
  std::string message, advice;
};
other_audio other_audio_of(std::span<const std::byte> file, const std::string& expected);

}   // namespace detail

/// Returns a plan of the complete audio in `data`. Reads only the headers.
/// Throws data_error if the bytes are not a WAV of a supported coding, are damaged, or exceed a limit.
audio wav(bytes data, const wav_options& options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/audio/impl/wav.inl>
#endif
