// Defines what row_stride.hpp declares.
#pragma once

#include <millrace/read/run/row_stride.hpp>

#include <millrace/base/error.hpp>

#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint32_t row_stride(const row_stride_options& o) {
  if (!o.asked) return 0;
  const bool kept = *o.asked == 0 && o.of_resume_point > 0;
  const std::size_t stride = *o.asked > 0 ? *o.asked : kept ? o.of_resume_point : o.mine.size;
  const std::string got = "got rows at a distance of " + std::to_string(stride) + (kept ? " (the resume point)" : "");
  if (stride % o.mine.size != 0)
    throw setup_error("the two rows of a pair would lie on different ranks: " + got + ", expected a multiple of the " +
                          std::to_string(o.mine.size) + " ranks",
                      kept ? "Resume with a number of ranks that divides the stride"
                           : "Set mix_rows' .stride to a multiple of the ranks, or leave it out");
  if (stride / o.mine.size >= o.rows)
    throw setup_error("no row of a batch has a partner to be mixed with: " + got + ", expected less than the " +
                          std::to_string(o.rows * o.mine.size) + " rows of a batch over all ranks",
                      "Use larger batches, or a smaller mix_rows .stride");
  return static_cast<std::uint32_t>(stride);
}

}}}  // namespace millrace::detail
