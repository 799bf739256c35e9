// The context of a batch in its run: the step, the number of rows on all ranks, and the resume point after the batch.
//
//   const mr::detail::batch_origin from{.first_step = 1000, .global_rows = 512, .next = position};
//   const std::uint64_t step = from.first_step + 3;      // step() of the session's fourth batch
//
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/item/position.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The place of a batch in its run.
struct batch_origin {
  static constexpr std::size_t unknown = ~std::size_t{0};

  std::uint64_t first_step = 0;                             ///< number of batches of this run that precede this session
  std::size_t global_rows = 0;                              ///< number of rows of all ranks in this step, or unknown
  std::uint64_t first_position = error_location::unknown;   ///< position of the batch's first row in the epoch
  millrace::position next{};                                ///< resume point after this batch
};

}}}   // namespace millrace::detail
