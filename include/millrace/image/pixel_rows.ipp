// Defines what pixel_rows.hpp declares.
#pragma once

#include <millrace/image/pixel_rows.hpp>

#include <millrace/image/resize/plane_resizer.hpp>
#include <millrace/image/row_finisher.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The working memory of a thread that renders rows.
struct row_renderer {
  plane_resizer resizer;
  row_finisher finisher;
};

MILLRACE_INLINE void render_rows(const picture_job& job, pixel_rows& rows, scratch& s) {
  auto& [resizer, finisher] = s.get<row_renderer>();
  resizer.start({.plan = job.plan, .fast = false, .target = finisher.target_of(job)});
  const plane_box box{.left = resizer.columns().source_begin(), .top = resizer.rows().source_begin(),
                      .right = resizer.columns().source_end(), .bottom = resizer.rows().source_end()};
  rows.start(box);
  resizer.set_source(box.left, box.right - box.left);
  while (resizer.wants_rows()) {
    rows.next({resizer.next_row(), 4 * (box.right - box.left)});
    resizer.commit_row();
  }
  finisher.finish(job, s);
}

}}}  // namespace millrace::detail
