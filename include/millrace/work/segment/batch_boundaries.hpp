// The positions at which the batches of a session begin and end, for the entrance of the last segment.
//
//   mr::detail::ticket_input<mr::record> in({.group = 256, .batches = &ring, .boundaries = order->boundaries()});
#pragma once

#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/segment/replay_log.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The state of a run when its session starts, and the ends of its epochs. Used by the last segment only.
struct batch_boundaries {
  std::uint64_t first_step = 0;        ///< batches of the run before the session's first
  std::uint64_t skipped_rows = 0;      ///< rows delivered before, which a replay creates again
  std::uint64_t buffered_tokens = 0;   ///< tokens in a packing stage before the replay's first sample
  std::uint64_t epoch_batches = 0;     ///< 0: an epoch is a pass through the source
  std::uint64_t end_step = batch_ring::unknown;   ///< the run ends before this batch
  replay_log* log = nullptr;           ///< records each batch; may be null
};

}}}  // namespace millrace::detail
