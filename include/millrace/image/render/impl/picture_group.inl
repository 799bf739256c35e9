// Definitions for picture_group.hpp.
#pragma once

#include <millrace/image/render/picture_group.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void picture_group::clear() noexcept { jobs_.clear(); }

MILLRACE_INLINE void picture_group::add(const picture_job& job) { jobs_.push_back(job); }

MILLRACE_INLINE void picture_group::render(scratch& s) const { render_pictures(jobs_, s); }

MILLRACE_INLINE picture_group::picture_group() = default;

MILLRACE_INLINE picture_group::~picture_group() = default;

}}}  // namespace millrace::detail
