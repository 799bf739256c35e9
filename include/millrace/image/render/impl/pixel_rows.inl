// Definitions for pixel_rows.hpp.
#pragma once

#include <millrace/image/render/pixel_rows.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/render/row_finisher.hpp>
#include <millrace/image/resize/plane_resizer.hpp>
#include <millrace/item/record.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The working memory of a thread that renders rows.
struct row_renderer {
  plane_resizer resizer;
  row_finisher finisher;
};

/// Replaces the colors of rows with alpha by the values that a job renders.
MILLRACE_INLINE void use_alpha(std::span<std::uint8_t> rgba, alpha_use use) noexcept {
  for (std::size_t x = 0; x < rgba.size(); x += 4)
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned alpha = rgba[x + 3], product = rgba[x + c] * alpha + 128;
      rgba[x + c] = static_cast<std::uint8_t>(use == alpha_use::alone ? alpha : ((product >> 8) + product) >> 8);
    }
}

/// The decoded rows of a box that several jobs share.
class buffered_rows final : public pixel_rows {
 public:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  static bool fits(const plane_box& box) noexcept {
    return (box.right - box.left) * (box.bottom - box.top) <= max_bytes / 4;
  }

  /// Decodes the box.
  void decode(const plane_box& box, pixel_rows& from) {
    box_ = box;
    const std::size_t row_bytes = 4 * (box.right - box.left);
    rgba_.resize(row_bytes * (box.bottom - box.top));
    from.start(box);
    for (std::size_t at = 0; at < rgba_.size(); at += row_bytes) from.next({&rgba_[at], row_bytes});
  }

  void start(const plane_box& box) override {
    next_ = &rgba_[4 * ((box.top - box_.top) * (box_.right - box_.left) + box.left - box_.left)];
  }
  void next(std::span<std::uint8_t> rgbx) override {
    std::memcpy(rgbx.data(), next_, rgbx.size());
    next_ += 4 * (box_.right - box_.left);
  }

 private:
  plane_box box_{};
  std::vector<std::uint8_t> rgba_;
  const std::uint8_t* next_ = nullptr;
};

MILLRACE_INLINE bool is_of_same_file(const picture_job& a, const picture_job& b) noexcept {
  return a.data->data() == b.data->data() && a.data->size() == b.data->size() && a.format_options == b.format_options;
}

/// Decodes the smallest box that contains the boxes of all jobs of a file. Returns false if each job must be decoded
/// alone.
MILLRACE_INLINE bool decode_shared(std::span<const picture_job* const> jobs, row_decoder& from, buffered_rows& to) {
  const picture_job& first = *jobs.front();
  const plane_size size{.width = first.header->width, .height = first.header->height};
  plane_box all{.left = size.width, .top = size.height};
  bool with_alpha = false;
  for (const picture_job* job : jobs) {
    const plane_box box = resize_source_box(job->plan, size);
    all = plane_box{.left = std::min(all.left, box.left),
                    .top = std::min(all.top, box.top),
                    .right = std::max(all.right, box.right),
                    .bottom = std::max(all.bottom, box.bottom)};
    with_alpha = with_alpha || job->alpha != alpha_use::ignored;
  }
  if (!buffered_rows::fits(all)) return false;
  try {
    from.open(first, with_alpha);
    to.decode(all, from);
    from.finish();
    return true;
  } catch (const data_error&) {   // the damage may be outside the boxes of some jobs
    return false;
  }
}

MILLRACE_INLINE void render_rows(const picture_job& job, pixel_rows& rows, scratch& s) {
  auto& [resizer, finisher] = s.get<row_renderer>();
  resizer.start({.plan = job.plan, .fast = false, .target = finisher.target_of(job)});
  const plane_box box{.left = resizer.columns().source_begin(),
                      .top = resizer.rows().source_begin(),
                      .right = resizer.columns().source_end(),
                      .bottom = resizer.rows().source_end()};
  rows.start(box);
  resizer.set_source(box.left, box.right - box.left);
  while (resizer.wants_rows()) {
    const std::span row(resizer.next_row(), 4 * (box.right - box.left));
    rows.next(row);
    if (job.alpha != alpha_use::ignored) use_alpha(row, job.alpha);
    resizer.commit_row();
  }
  finisher.finish(job, s);
}

MILLRACE_INLINE void render_each(std::span<const picture_job> jobs, row_decoder& from, scratch& s) {
  std::vector<const picture_job*> alike;
  std::uint64_t shared = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto is_like_this = [&](const picture_job& other) { return is_of_same_file(other, jobs[i]); };
    if (std::any_of(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(i), is_like_this)) continue;
    alike.clear();
    for (const picture_job& job : jobs.subspan(i))
      if (is_like_this(job)) alike.push_back(&job);
    try {
      auto& buffer = s.get<buffered_rows>();
      if (alike.size() > 1 && decode_shared(alike, from, buffer)) {
        for (const picture_job* job : alike) render_rows(*job, buffer, s);
        shared += alike.size() - 1;
        continue;
      }
      for (const picture_job* job : alike) {
        from.open(*job, job->alpha != alpha_use::ignored);
        render_rows(*job, from, s);
        from.finish();
      }
    } catch (error& e) {
      e.locate(location_of(*jobs[i].data));
      throw;
    }
  }
  s.count(text_of(event_name::shared), shared);
}

}}}   // namespace millrace::detail
