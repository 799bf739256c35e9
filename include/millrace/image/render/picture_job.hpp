// One image to render: its file, its plan, and the destination of its pixels.
//
//   mr::detail::picture_job job{.format = &mr::detail::jpeg_format, .data = &file, .options = &options,
//                              .header = &header, .target = {.data = row}};
//   mr::detail::render_pictures({&job, 1}, memory);
//
// Errors: data_error for a damaged file. Threads: any thread; each thread passes its own scratch.
#pragma once

#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/jpeg/jpeg_options.hpp>
#include <millrace/image/plan/padding.hpp>
#include <millrace/image/plan/row_operation.hpp>
#include <millrace/image/render/picture_format.hpp>
#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/image/resize/resize_plan.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// One image to render. All objects to which the job points must outlive the call.
struct picture_job {
  const picture_format* format = nullptr;
  const bytes* data = nullptr;
  const jpeg_options* options = nullptr;
  const jpeg_header* header = nullptr;
  std::uint32_t format_options = 0;       ///< options that only the format interprets
  alpha_use alpha = alpha_use::ignored;   ///< other values only for formats with alpha
  resize_plan plan{};                     ///< crop and resize, in pixels of the decoded image
  unsigned eighths = 8;                   ///< size of the decoded image, in eighths of the stored size: 1, 2, 4 or 8
  pixel_target target{};
  const row_operation* operation = nullptr;   ///< runs on the rendered bytes; null for none
  std::optional<job_padding> padding{};       ///< the padding around the rendered image
};

/// Decodes images, and writes the pixels of each to its target. Throws data_error if a file is damaged.
void render_pictures(std::span<const picture_job> jobs, scratch& s);

// Renders together the images of several rows and columns of a batch. A group is faster than single images, and has the
// same result.
// Errors: data_error for a damaged image; if several are damaged, for one of them. Lifetime: joined objects must
// outlive render().
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

/// Renders the images of one item into `row`. join() adds these images to a group.
template <class Item>
void render_as_group(const Item& item, std::span<std::uint8_t> row, scratch& s) {
  auto& all = s.get<picture_group>();
  all.clear();
  item.join(all, row);
  all.render(s);
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/render/impl/picture_job.inl>
#endif
