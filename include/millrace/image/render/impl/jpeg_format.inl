// Definitions for jpeg_format.hpp.
#pragma once

#include <millrace/image/render/jpeg_format.hpp>

#include <millrace/image/render/picture_job.hpp>
#include <millrace/image/render/picture_renderer.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void render_jpegs(std::span<const picture_job> jobs, scratch& s) {
  s.get<picture_renderer>().render(jobs, s);
}

}}}  // namespace millrace::detail
