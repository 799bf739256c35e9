// Decodes baseline JPEGs to planes, several times as fast as libjpeg-turbo. The planes are bit-identical to those of
// libjpeg-turbo.
//
//   auto& decoder = scratch.get<mr::detail::jpeg_plane_decoder>();
//   auto [a, b] = decoder.decode(first, second);                 // two images at once on one core
//   if (a) use(a.planes); else by_libjpeg(first, a.refusal);     // `refusal` is the reason
//
// decode_each() processes a list of images and always keeps two of them in progress. The result for an image never
// depends on the image that is decoded at the same time. Lifetime: the planes that decode() returns are valid until the
// decoder's next call. For decode_each(), see its comment.
// Errors: throws only std::bad_alloc. The decoder refuses unusual and damaged files; libjpeg must decode these files.
// Threads: one decoder per worker.
#pragma once

#include <millrace/image/jpeg/baseline/plane_job.hpp>
#include <millrace/item/scratch.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Decodes baseline JPEGs to planes, one at a time or two at once.
class jpeg_plane_decoder {
 public:
  enum class code { best, portable };

  /// `best` selects the fastest code for this processor. `portable` is for tests and produces the same planes.
  explicit jpeg_plane_decoder(code choice = code::best) {
    if (choice == code::best) tools_.choose_best();
  }

  /// Returns whether this processor has the instructions of the fast code: BMI2 and AVX2, or NEON.
  /// The portable code is correct, but slower than libjpeg-turbo.
  static bool has_fast_code() noexcept {
#ifdef __x86_64__
    if (!cpu_has_bit_manipulation()) return false;
#endif
    return cpu_has_word_layer();
  }

  /// Decodes one image. The planes are valid until the next call.
  jpeg_planes_result decode(const jpeg_planes_request& request) {
    jpeg_planes_result result;
    decode_each({&request, 1}, [&](std::size_t, const jpeg_planes_result& r) { result = r; });
    return result;
  }

  /// Decodes two images at once. The planes of both are valid until the next call.
  std::array<jpeg_planes_result, 2> decode(const jpeg_planes_request& a, const jpeg_planes_request& b) {
    const std::array<jpeg_planes_request, 2> both{a, b};
    std::array<jpeg_planes_result, 2> results;
    // If both requests are accepted, each uses a separate job. Therefore the planes of both results remain valid.
    decode_each(both, [&](std::size_t i, const jpeg_planes_result& r) { results[i] = r; });
    return results;
  }

  /// Calls use(index, result) for each request, in the order in which the results become ready. The planes of a result
  /// are valid only during the call of use(). Exception: the planes of the last two results are valid until the
  /// decoder's next call.
  template <class Use>
  void decode_each(std::span<const jpeg_planes_request> requests, const Use& use) {
    if constexpr (std::endian::native != std::endian::little) {
      for (std::size_t i = 0; i < requests.size(); ++i) use(i, jpeg_planes_result{jpeg_refusal::machine, {}});
      return;
    }
    std::size_t next = 0, index[2] = {};
    bool active[2] = {};
    const auto start = [&](std::size_t j) {
      for (active[j] = false; next < requests.size() && !active[j];) {
        index[j] = next++;
        jobs_[j].begin(requests[index[j]], store_, tools_);
        if (jobs_[j].finished()) use(index[j], jobs_[j].result());
        else active[j] = true;
      }
    };
    const auto attend = [&](std::size_t j) {
      jobs_[j].attend(tools_);
      if (!jobs_[j].finished()) return;
      use(index[j], jobs_[j].result());
      start(j);
    };
    start(0);
    start(1);
    while (active[0] && active[1]) {
      tools_.loops.run(jobs_[0].stream(), jobs_[1].stream());
      attend(0);
      attend(1);
    }
    for (std::size_t j = 0; j < 2; ++j)
      while (active[j]) {
        tools_.loops.run(jobs_[j].stream());
        attend(j);
      }
  }

 private:
  plane_tools tools_;
  component_table_store store_;
  std::array<plane_job, 2> jobs_;
};

/// Decodes one image with the decoder in the scratch memory. The planes are valid until that decoder's next call.
inline jpeg_planes_result decode_planes(const jpeg_planes_request& request, scratch& s) {
  return s.get<jpeg_plane_decoder>().decode(request);
}
/// Decodes two images at once with the decoder in the scratch memory.
inline std::array<jpeg_planes_result, 2> decode_planes(const jpeg_planes_request& a, const jpeg_planes_request& b,
                                                       scratch& s) {
  return s.get<jpeg_plane_decoder>().decode(a, b);
}

}}}   // namespace millrace::detail
