// The images of several rows and columns of a batch, which are rendered at once.
//
//   auto& group = scratch.get<mr::detail::picture_group>();
//   group.clear();
//   for (const mr::picture& p : views) p.join(group, row_of(p));
//   group.render(scratch);
//
// The more images there are, the faster each is: JPEGs are decoded two at a time, and images that are made of the
// same JPEG share its planes. No bit depends on it.
// Errors: data_error of one of the images. Threads: one at a time. Lifetime: what joins outlives render().
#pragma once

#include <millrace/image/render/picture_job.hpp>
#include <millrace/item/scratch.hpp>

#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class picture_group {
 public:
  void clear() noexcept { jobs_.clear(); }
  void add(const picture_job& job) { jobs_.push_back(job); }
  void render(scratch& s) const { render_pictures(jobs_, s); }

 private:
  std::vector<picture_job> jobs_;
};

}}}  // namespace millrace::detail
