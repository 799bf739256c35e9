// Other settings for a run that was recorded: what is not named stays as it was.
//
//   mr::what_if(window, {.workers = 8, .storage_speed = 0.25});      // report/what_if.hpp
//
// Factors are 1 where nothing changes: storage_speed = 2 is twice as fast, step_time = 2 twice as slow.
// Errors: none. Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

struct what_if_change {
  std::optional<std::size_t> workers{}, io_threads{}, batch{};
  std::optional<std::size_t> prefetch{};   ///< host slots
  double storage_speed = 1, work_time = 1, step_time = 1;   ///< factors
  double fixed_step_ns = 0;                ///< of each step, whatever the batch
};

}}  // namespace millrace
