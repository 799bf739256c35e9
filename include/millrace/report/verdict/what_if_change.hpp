// Other settings for a recorded run; members that are not set stay as they were.
//
//   mr::what_if(window, {.workers = 8, .storage_speed = 0.25});      // report/simulate/what_if.hpp
//
// A factor of 1 is no change: storage_speed = 2 is twice as fast, step_time = 2 takes twice as long.
// Errors: none. Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// The settings that change.
struct what_if_change {
  std::optional<std::size_t> workers{}, io_threads{}, batch{};
  std::optional<std::size_t> prefetch{};   ///< host slots
  double storage_speed = 1, work_time = 1, step_time = 1;   ///< factors
  double fixed_step_ns = 0;                ///< part of each step that does not depend on the batch size
};

}}  // namespace millrace
