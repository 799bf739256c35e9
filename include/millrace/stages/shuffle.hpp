// shuffle: a random order that is the same for the same seed and epoch, whatever the number of threads.
//
//   mr::shards("train-{000..146}.tar", {.seed = 7}) | mr::shuffle({.window = 8192}) | ...
//
// Right after a source it reorders the plan: shards (parts) are permuted by (seed, epoch), then sample i of that
// sequence gets the key i + U(seed, epoch, i) * window and samples come in key order ("sliding jitter"), so that a
// sample moves by at most `window` places and about half a window of encoded samples is held at a time.
// Anywhere else it is a buffer that holds up to `window` finished items, with the same rule.
#pragma once

#include <millrace/flow/diagnose.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

struct shuffle_options {
  std::size_t window = 8192;   ///< in samples; 1 permutes the shards only
  diagnose::option_is_window buffer_size{};   ///< says how it is called
};

struct shuffle_stage : stage_tag {
  shuffle_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::none;
  template <class In>
  using out = In;
};

constexpr shuffle_stage shuffle(shuffle_options options = {}) { return {{}, options}; }
/// What shuffle(1000) is told.
broken_stage shuffle(diagnose::shuffle_of_a_number);

}}  // namespace millrace
