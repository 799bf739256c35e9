// Renders together the images of several rows and columns of a batch.
//
//   auto& group = scratch.get<mr::detail::picture_group>();
//   group.clear();
//   for (const mr::picture& p : views) p.join(group, row_of(p));
//   group.render(scratch);
//
// A larger group needs less time per image for two reasons. JPEGs are decoded two at a time, and images of the same
// JPEG share its decoded planes (luma and chroma). Grouping does not change the result.
// Errors: data_error for one of the damaged images. Threads: not thread-safe; one thread at a time. Lifetime: joined
// objects must outlive render().
#pragma once

#include <millrace/image/render/picture_job.hpp>
#include <millrace/item/scratch.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class picture_group {
 public:
  picture_group();
  picture_group(const picture_group&) = delete;
  picture_group& operator=(const picture_group&) = delete;
  ~picture_group();

  void clear() noexcept;
  void add(const picture_job& job);
  void render(scratch& s) const;

 private:
  std::vector<picture_job> jobs_;
};

/// Renders the images of one item, which join() adds to a group, into `row`.
template <class Item>
void render_as_group(const Item& item, std::span<std::uint8_t> row, scratch& s) {
  auto& all = s.get<picture_group>();
  all.clear();
  item.join(all, row);
  all.render(s);
}

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/render/impl/picture_group.inl>
#endif
