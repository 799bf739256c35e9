// Defines render_pictures() of picture_job.hpp.
#pragma once

#include <millrace/image/picture_renderer.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void render_pictures(std::span<const picture_job> jobs, scratch& s) {
  s.get<picture_renderer>().render(jobs, s);
}

}}}  // namespace millrace::detail
