// Chooses the stride of a run that mixes rows (mixup, cutmix): the distance between the two rows of a pair, counted
// over the rows of all ranks.
//
//   const std::uint32_t stride = mr::detail::row_stride({.requested = 0, .of_resume_point = 4, .rows = 64,
//                                                        .mine = {.rank = 0, .size = 2}});      // 4
//
// The rows p and p + stride of a global batch are a pair if floor(p / stride) is even. A rank has the rows p with p mod
// (number of ranks) = rank. Therefore, if the number of ranks divides the stride, both rows of each pair are on one
// rank.
// Errors: setup_error with the numbers. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/world.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct row_stride_options {
  std::optional<std::size_t> requested{};   ///< empty if rows are not mixed; 0 selects the default stride
  std::uint32_t of_resume_point = 0;        ///< stride of the resume point; 0 for a new run
  std::size_t rows = 1;                     ///< rows per batch on one rank
  world mine{};
};

/// Returns the stride, or 0 if rows are not mixed. Throws setup_error if the number of ranks does not divide the
/// stride, or if no row has a partner.
inline std::uint32_t row_stride(const row_stride_options& o) {
  if (!o.requested) return 0;
  const bool resumed = *o.requested == 0 && o.of_resume_point > 0;
  const std::size_t stride = *o.requested > 0 ? *o.requested : resumed ? o.of_resume_point : o.mine.size;
  const std::string got = "got rows at a distance of " + std::to_string(stride) +
                          (resumed ? " (the resume point)" : "");
  if (stride % o.mine.size != 0)
    throw setup_error("the two rows of a pair would be on different ranks: " + got + ", expected a multiple of the " +
                          std::to_string(o.mine.size) + " ranks",
                      resumed ? "Resume with a number of ranks that divides the stride"
                              : "Set mix_rows' .stride to a multiple of the number of ranks, or omit it");
  if (stride / o.mine.size >= o.rows)
    throw setup_error("no row of a batch has a partner to mix with: " + got + ", expected less than the " +
                          std::to_string(o.rows * o.mine.size) + " rows of a batch over all ranks",
                      "Use larger batches, or a smaller mix_rows .stride");
  return static_cast<std::uint32_t>(stride);
}

}}}   // namespace millrace::detail
