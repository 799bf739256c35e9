// Definitions for planned_run.hpp.
#pragma once

#include <millrace/read/run/planned_run.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE error_location planned_run::locate(std::uint64_t /*epoch*/, std::uint64_t /*at*/) const {
  throw setup_error("locate() needs a source with an index: this session streams its samples",
                    "The error message and the quarantine list contain the shard and the key of the sample");
}

MILLRACE_INLINE shuffle_statistics planned_run::shuffle_quality() const {
  throw setup_error("shuffle_quality() requires a single source with an index",
                    "Use a source with an index, without mix()");
}

}}}   // namespace millrace::detail
