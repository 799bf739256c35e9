// shuffle: produces a random order that depends only on seed and epoch, not on the number of threads.
//
//   auto flow = mr::shards("train-{000..146}.tar", {.seed = 7}) | mr::shuffle({.window = 8192});
//
// Directly after a source, shuffle changes the order of reading. Shards are permuted by (seed, epoch). Then sample i of
// the permuted shards gets the sort key i + U(seed, epoch, i) * window, where U is uniform in [0, 1). Samples are
// delivered in the order of their sort keys ("sliding jitter"). A sample moves by less than `window` positions. If the
// window has at least as many samples as an epoch, the order is a uniform permutation of the epoch. With an index, the
// order is computed, and nothing is buffered. Without an index, about half a window of encoded samples is buffered at a
// time. In the first epoch, a complete window is buffered before the first batch, to find out whether the window covers
// the epoch. If the memory budget is too small for a complete window, delivery begins earlier. If shuffle does not
// directly follow a source, it buffers up to `window` items, and delivers them in the order of their sort keys.
// Errors: if the window has at least as many samples as the epoch, but does not fit into the memory budget, the order
// was not a uniform permutation. Then the end of the epoch is a setup_error.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/diagnose.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of shuffle().
struct shuffle_options {
  std::size_t window = 8192;   ///< window in samples; 1 permutes only the shards
};

namespace detail {

/// The result of shuffle().
struct shuffle_stage : stage_tag {
  shuffle_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::none;
  template <class In>
  using out = In;
};

}   // namespace detail

/// Returns the stage that shuffles; the default window is 8192 samples.
constexpr detail::shuffle_stage shuffle(shuffle_options options = {}) { return {{}, options}; }
/// Rejects shuffle(1000) at compile time. The compile error names the option `window`.
detail::broken_stage shuffle(detail::diagnose::shuffle_of_a_number);
/// Rejects the option name buffer_size at compile time. The compile error names the option `window`.
detail::broken_stage shuffle(detail::diagnose::shuffle_by_another_name);

}}   // namespace millrace
