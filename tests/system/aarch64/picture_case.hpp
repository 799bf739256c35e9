// One JPEG, the requested geometry, and digests of the output, which must be the same on every machine.
//
//   case_runner run;
//   const picture_case::outcome got = run.all_of(c);        // reads c.file and c.geometry, ignores c.expected
//   write_case(file, c);  read_case(file, c);               // false at the end of the file
//
// Does not need libjpeg, so a cross compiler without it can build this.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/resize/plane_resizer.hpp>
#include <millrace/image/resize/resize_plan.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace foreign {

namespace mr = millrace;
namespace detail = millrace::detail;

struct picture_case {
  /// A box of the image, its size after resizing, and whether it is mirrored.
  struct request {
    std::uint32_t image_width = 0, image_height = 0, left = 0, top = 0, width = 0, height = 0, columns = 0, rows = 0,
                  flipped = 0;
  };
  /// The digests are 0 if the image was refused.
  struct outcome {
    std::uint64_t refusal = 0, planes = 0, exact = 0, fast = 0, numbers = 0;
    bool operator==(const outcome&) const = default;
  };

  request geometry{};
  outcome expected{};
  std::vector<std::byte> file{};
};

class case_runner {
 public:
  using outcome = picture_case::outcome;

  /// Decodes the image alone and in a pair with itself. If the results differ, the refusal is 255.
  outcome all_of(const picture_case& c) {
    const detail::resize_plan plan = plan_of(c.geometry);
    const detail::plane_box box = detail::resize_source_box(plan, {c.geometry.image_width, c.geometry.image_height});
    const mr::detail::jpeg_planes_request request{.bytes = c.file, .left = box.left, .top = box.top, .right = box.right,
                                      .bottom = box.bottom};
    const outcome alone = outcome_of(decoder_.decode(request), plan);
    const auto both = decoder_.decode(request, request);
    for (const mr::detail::jpeg_planes_result& result : both)
      if (outcome_of(result, plan) != alone) return {.refusal = 255};
    return alone;
  }

  /// Valid until the next call.
  mr::detail::jpeg_planes_result planes_of(const picture_case& c) { return decoder_.decode({.bytes = c.file}); }

 private:
  static detail::resize_plan plan_of(const picture_case::request& geometry) {
    detail::resize_plan plan{.rows = mr::detail::plan_axis(geometry.image_height),
                             .columns = mr::detail::plan_axis(geometry.image_width)};
    plan.rows.crop(geometry.top, geometry.height);
    plan.columns.crop(geometry.left, geometry.width);
    plan.rows.resize(geometry.rows);
    plan.columns.resize(geometry.columns);
    if (geometry.flipped != 0) plan.columns.flip();
    return plan;
  }

  outcome outcome_of(const mr::detail::jpeg_planes_result& got, const detail::resize_plan& plan) {
    if (!got) return {.refusal = static_cast<std::uint64_t>(got.refusal)};
    return {.refusal = 0, .planes = digest_of(got.planes), .exact = rendered<std::uint8_t>(got.planes, plan, false),
            .fast = rendered<std::uint8_t>(got.planes, plan, true),
            .numbers = rendered<float>(got.planes, plan, false)};
  }

  static std::uint64_t digest_of(const mr::detail::jpeg_planes& planes) {
    std::uint64_t digest = mr::detail::combine_keys(static_cast<std::uint64_t>(planes.left),
                                            static_cast<std::uint64_t>(planes.top));
    for (std::size_t c = 0; c < static_cast<std::size_t>(planes.components); ++c)
      for (int y = 0; y < planes.component[c].height; ++y) {
        const mr::detail::plane_view& plane = planes.component[c];
        const std::uint8_t* const row = plane.data + static_cast<std::size_t>(y) * plane.stride_bytes;
        digest = mr::detail::digest_bytes(std::as_bytes(std::span(row, static_cast<std::size_t>(plane.width))), digest);
      }
    return digest;
  }

  template <class T>
  std::uint64_t rendered(const mr::detail::jpeg_planes& planes, const detail::resize_plan& plan, bool fast) {
    std::vector<T> pixels(static_cast<std::size_t>(plan.rows.count * plan.columns.count) * 3);
    constexpr bool bytes = sizeof(T) == 1;
    resizer_.start({.plan = plan, .fast = fast,
                    .target = {.data = pixels.data(), .type = bytes ? detail::pixel_type::u8 : detail::pixel_type::f32,
                               .scale = {0.017F, 0.0175F, 0.0174F}, .bias = {-2.1F, -2.04F, -1.8F}}});
    resizer_.render(planes);
    return mr::detail::digest_bytes(std::as_bytes(std::span(pixels)));
  }

  mr::detail::jpeg_plane_decoder decoder_;
  detail::plane_resizer resizer_;
};

inline void write_case(std::FILE* to, const picture_case& c) {
  const std::uint64_t size = c.file.size();
  std::fwrite(&c.geometry, sizeof c.geometry, 1, to);
  std::fwrite(&c.expected, sizeof c.expected, 1, to);
  std::fwrite(&size, sizeof size, 1, to);
  std::fwrite(c.file.data(), 1, c.file.size(), to);
}

inline bool read_case(std::FILE* from, picture_case& c) {
  std::uint64_t size = 0;
  const auto read_value = [&](auto& value) { return std::fread(&value, sizeof value, 1, from) == 1; };
  if (!read_value(c.geometry) || !read_value(c.expected) || !read_value(size)) return false;
  c.file.resize(size);
  return std::fread(c.file.data(), 1, size, from) == size;
}

}  // namespace foreign
