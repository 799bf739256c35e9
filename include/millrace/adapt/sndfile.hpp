// Decodes audio files with libsndfile: FLAC, Ogg Vorbis, Opus, MP3, AIFF, CAF, AU, and all encodings of WAV.
//
//   #include <millrace/adapt/sndfile.hpp>                                // link with -lsndfile
//   mr::audio a = mr::sndfile(r["flac;ogg;wav"]).mono().random_crop(1.0, rng);
//
// Opt-in: needs libsndfile (libsndfile1-dev). MP3 needs libsndfile 1.1 or newer. Audio samples are f32, as in the
// Python package soundfile: integers are divided by 2^(bits - 1). Decoding begins near the first frame of the crop. In
// a file that is not seekable, a crop that begins after frame 0 is a data_error. mr::wav() reads plain WAV files
// faster.
// Errors: data_error for a file that libsndfile cannot read, that ends early, or that exceeds a limit. The error
// contains shard, key and stage "sndfile". Threads, lifetime: see audio/audio.hpp. Cost: the header is read when the
// plan is created, and again when the plan is rendered. For MP3, libsndfile reads the complete file each time to
// determine its length.
#pragma once

#include <millrace/base/version.hpp>

#if !__has_include(<sndfile.h>)
#error "millrace: libsndfile is not installed: apt-get install libsndfile1-dev"
#endif
#include <sndfile.h>

#include <millrace/audio/audio.hpp>
#include <millrace/audio/wav.hpp>
#include <millrace/base/error.hpp>
#include <millrace/item/record.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of sndfile().
struct sndfile_options {
  audio_limits limits{};
};

namespace detail { namespace sndfile_files {

[[noreturn]] inline void fail(const std::string& problem, const std::string& advice, const bytes& file) {
  error_location at{.stage = "sndfile"};
  at.complete(location_of(file));
  throw data_error(problem, advice, at);
}

/// A file in memory that libsndfile reads.
class input {
 public:
  explicit input(const bytes& file) : file_(file) {
    SF_VIRTUAL_IO calls{.get_filelen = length, .seek = seek, .read = read, .write = write, .tell = tell};
    handle_.reset(sf_open_virtual(&calls, SFM_READ, &info_, this));
  }

  SNDFILE* handle() const noexcept { return handle_.get(); }
  const SF_INFO& info() const noexcept { return info_; }

 private:
  struct closer {
    void operator()(SNDFILE* file) const noexcept { sf_close(file); }
  };

  static input& self(void* user) noexcept { return *static_cast<input*>(user); }
  static sf_count_t length(void* user) { return static_cast<sf_count_t>(self(user).file_.size()); }
  static sf_count_t tell(void* user) { return self(user).at_; }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t seek(sf_count_t offset, int from, void* user) {
    const sf_count_t base = from == SEEK_CUR ? tell(user) : from == SEEK_END ? length(user) : 0;
    if (offset < -base || offset > length(user) - base) return -1;
    return self(user).at_ = base + offset;
  }
  static sf_count_t read(void* to, sf_count_t count, void* user) {
    input& in = self(user);
    const sf_count_t present = std::clamp<sf_count_t>(count, 0, length(user) - in.at_);
    if (present > 0) std::memcpy(to, in.file_.data() + in.at_, static_cast<std::size_t>(present));
    in.at_ += present;
    return present;
  }

  const bytes& file_;
  sf_count_t at_ = 0;
  SF_INFO info_{};
  std::unique_ptr<SNDFILE, closer> handle_;
};

inline void read(const audio_format::part& p, std::span<float> samples, scratch& s) {
  const bytes& file = *p.data;
  const input in(file);
  const audio_header& header = p.file->header;
  const auto first = static_cast<sf_count_t>(p.first_frame);
  const auto count = static_cast<sf_count_t>(samples.size() / header.channels);
  const bool same = in.handle() && static_cast<std::size_t>(in.info().channels) == header.channels;
  if (!same || (first > 0 && sf_seek(in.handle(), first, SEEK_SET) != first))
    fail("libsndfile cannot read the audio from frame " + std::to_string(first) + " on",
         "Fetch the file again, or omit the sample", file);
  const sf_count_t present = sf_readf_float(in.handle(), samples.data(), count);
  if (present != count || sf_error(in.handle()) != SF_ERR_NO_ERROR)
    fail("the audio is truncated or damaged: got " + std::to_string(first + std::max<sf_count_t>(present, 0)) +
             " frames, expected at least " + std::to_string(first + count) + " of the " +
             std::to_string(header.frames) + " in its header" +
             (sf_error(in.handle()) != 0 ? std::string(": ") + sf_error_number(sf_error(in.handle())) : ""),
         "Fetch the file again, or omit the sample", file);
  s.count("audio by libsndfile");
}

inline constexpr audio_format format{.name = "sndfile", .read = read};

}}   // namespace detail::sndfile_files

/// Returns a plan of the complete audio in `data`. Reads only the header. Throws data_error if libsndfile cannot read
/// the header, or if the file exceeds a limit.
inline audio sndfile(bytes data, const sndfile_options& options = {}) {
  namespace files = detail::sndfile_files;
  detail::audio_file file{.format = &files::format, .limits = options.limits};
  {
    const files::input in(data);
    if (!in.handle() || in.info().frames < 0) {
      const auto other = detail::other_audio_of(data, "an audio file");
      files::fail("libsndfile cannot read the header: " + other.message,
                  "Fetch the file again, or convert it to WAV or FLAC", data);
    }
    file.header = audio_header{.rate = static_cast<std::uint32_t>(in.info().samplerate),
                               .channels = static_cast<std::size_t>(in.info().channels),
                               .frames = static_cast<std::uint64_t>(in.info().frames)};
  }
  return {std::move(data), file};
}

}}   // namespace millrace
