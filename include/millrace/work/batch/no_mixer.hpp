// Chooses what mixes the rows of a segment's batches: nothing, unless its columns are those of mix_rows.
//
//   using mixer = mr::detail::mixer_of<columns>::type;      // no_mixer, or a row_mixer (work/batch/row_mixer.hpp)
//   if constexpr (mixer::mixes) std::puts("rows are mixed");
//
// A program without mix_rows includes nothing of it. Errors: none. Threads: not relevant.
#pragma once

#include <millrace/base/version.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Mixes nothing.
struct no_mixer {
  static constexpr bool mixes = false;
  struct options {};
  explicit no_mixer(options) noexcept {}
};

template <class Columns>
struct mixer_of {
  using type = no_mixer;
};

}}}  // namespace millrace::detail
