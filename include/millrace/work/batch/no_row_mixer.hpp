// Selects the class that mixes the rows of batches. Only a flow with the stage mix_rows has a row_mixer.
//
//   using mixer = mr::detail::row_mixer_of<columns>::type;      // no_row_mixer, or a row_mixer (row_mixer.hpp)
//   if constexpr (mixer::mixes) std::puts("rows are mixed");
//
// A program without mix_rows does not include row_mixer.hpp. Errors: none. Threads: no shared state.
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

}}}   // namespace millrace::detail
