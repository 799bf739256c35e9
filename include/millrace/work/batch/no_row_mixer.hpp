// Selects the mixer of rows of a segment's batches: none, unless its columns are those of mix_rows.
//
//   using mixer = mr::detail::row_mixer_of<columns>::type;      // no_row_mixer, or a row_mixer (row_mixer.hpp)
//   if constexpr (mixer::mixes) std::puts("rows are mixed");
//
// A program without mix_rows does not include the mixer. Errors: none. Threads: not relevant.
#pragma once

#include <millrace/base/version.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Does not mix rows.
struct no_row_mixer {
  static constexpr bool mixes = false;
  struct options {};
  explicit no_row_mixer(options) noexcept {}
};

template <class Columns>
struct row_mixer_of {
  using type = no_row_mixer;
};

}}}  // namespace millrace::detail
