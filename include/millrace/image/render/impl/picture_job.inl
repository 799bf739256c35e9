// Definitions for picture_job.hpp.
#pragma once

#include <millrace/image/render/picture_job.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void render_pictures(std::span<const picture_job> jobs, scratch& s) {
  const auto is_like_first = [&](const picture_job& job) { return job.format == jobs.front().format; };
  if (std::all_of(jobs.begin(), jobs.end(), is_like_first)) {
    if (!jobs.empty()) jobs.front().format->render(jobs, s);
    return;
  }
  std::vector<picture_job> alike;
  for (std::size_t first = 0; first < jobs.size(); ++first) {
    const auto has_format = [&](const picture_job& job) { return job.format == jobs[first].format; };
    if (std::any_of(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(first), has_format)) continue;
    alike.clear();
    std::copy_if(jobs.begin() + static_cast<std::ptrdiff_t>(first), jobs.end(), std::back_inserter(alike), has_format);
    jobs[first].format->render(alike, s);
  }
}

MILLRACE_INLINE void picture_group::clear() noexcept { jobs_.clear(); }

MILLRACE_INLINE void picture_group::add(const picture_job& job) { jobs_.push_back(job); }

MILLRACE_INLINE void picture_group::render(scratch& s) const { render_pictures(jobs_, s); }

MILLRACE_INLINE picture_group::picture_group() = default;

MILLRACE_INLINE picture_group::~picture_group() = default;

}}}   // namespace millrace::detail
