// Decodes the AC scans of a progressive JPEG with the loops of band_stream.hpp. The loops are compiled for several
// types of processors; best() returns the loops for the current processor.
//
//   const auto loops = mr::detail::band_loops::best();
//   bool intact = loops.run(scan.refines, stored, stream, blocks);  // false: the data is damaged
//
// Each member function declares its instruction set. Therefore a build for any x86-64 contains all loops.
// Threads: any; calls share no state.
#pragma once

#include <millrace/image/jpeg/progressive/band_stream.hpp>
#include <millrace/simd/cpu_features.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The loops for any processor, without special instructions.
template <class Sets>
struct plain_bands {
  template <bool store>
  static bool first(band_stream& s, const block_run& run) {
    return decode_first<Sets, store>(s, run);
  }
  template <bool store>
  static bool refinement(band_stream& s, const block_run& run) {
    return decode_refinement<Sets, store>(s, run);
  }
};

#ifdef __x86_64__
struct bmi2_bands {
  template <bool store>
  [[gnu::target("bmi,bmi2,lzcnt,popcnt")]] static bool first(band_stream& s, const block_run& run) {
    return decode_first<deposit_sets, store>(s, run);
  }
  template <bool store>
  [[gnu::target("bmi,bmi2,lzcnt,popcnt")]] static bool refinement(band_stream& s, const block_run& run) {
    return decode_refinement<deposit_sets, store>(s, run);
  }
};
#endif

class band_loops {
 public:
  static band_loops portable() noexcept { return of<plain_bands<portable_sets>>(); }
  static band_loops best() noexcept {
#ifdef __x86_64__
    if (has_fast_code()) return of<bmi2_bands>();
#elif defined __aarch64__
    if (has_fast_code()) return of<plain_bands<deposit_sets>>();
#endif
    return portable();
  }

  /// Returns whether the CPU has a fast instruction that moves bits to the positions of a mask (PDEP or BDEP).
  static bool has_fast_code() noexcept { return cpu_has_fast_deposit(); }

  bool run(bool refines, bool stored, band_stream& s, const block_run& blocks) const {
    return loops_[2 * refines + stored](s, blocks);
  }

 private:
  using loop = bool (*)(band_stream&, const block_run&);

  template <class Bands>
  static band_loops of() noexcept {
    band_loops all;
    all.loops_[0] = Bands::template first<false>;
    all.loops_[1] = Bands::template first<true>;
    all.loops_[2] = Bands::template refinement<false>;
    all.loops_[3] = Bands::template refinement<true>;
    return all;
  }

  loop loops_[4] = {};
};

}}}   // namespace millrace::detail
