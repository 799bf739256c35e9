// Describes the picture that a resizer makes: the plans of both axes, in pixels of the source.
//
//   mr::detail::resize_plan plan{.rows = mr::detail::plan_axis(375), .columns = mr::detail::plan_axis(500)};
//   plan.columns.crop(100, 280), plan.columns.resize(224), plan.columns.flip();
//
// Errors: none. Threads: a value.
#pragma once

#include <millrace/image/resize/plan_axis.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The plans of both axes of the source, and whether its rows become the columns of the result.
struct resize_plan {
  plan_axis rows{};
  plan_axis columns{};
  bool transposed = false;
};

}}}  // namespace millrace::detail
