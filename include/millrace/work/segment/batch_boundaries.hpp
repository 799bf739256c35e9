// The positions at which the batches of a session begin and end, for the input of the last segment (the stage that
// fills batches).
//
//   mr::detail::ticket_input<mr::record> in({.group = 256, .batches = &ring, .boundaries = order->boundaries()});
#pragma once

#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/segment/replay_log.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The state of a run at the start of its session, and the ends of its epochs. Only the last segment uses it.
struct batch_boundaries {
  std::uint64_t first_step = 0;        ///< number of batches of the run before the first batch of the session
  std::uint64_t skipped_rows = 0;      ///< rows to skip, because they were delivered before the resume
  std::uint64_t buffered_tokens = 0;   ///< tokens in a packing stage before the first sample that is read again
  std::uint64_t epoch_batches = 0;     ///< batches per epoch; 0 if an epoch is a pass through the source
  std::uint64_t end_step = batch_ring::unknown;   ///< number of the first batch after the end of the run
  replay_log* log = nullptr;           ///< records each batch; may be null
};

}}}  // namespace millrace::detail
