// Compiled once by each available compiler, and both objects are linked into one program. Each build has its own inline
// namespace (-Dv0_1=...), or the linker would keep one compiler's functions and drop the other's.
#include "resize_loops.hpp"

#include <millrace/image/resize/plane_resizer.hpp>

#include <cstring>
#include <string_view>

#define MILLRACE_BENCH_TEXT_OF(x) #x
#define MILLRACE_BENCH_TEXT(x) MILLRACE_BENCH_TEXT_OF(x)

namespace bench {
namespace {

static_assert(std::string_view(MILLRACE_BENCH_TEXT(MILLRACE_ABI)).ends_with(MILLRACE_BENCH_TEXT(MILLRACE_BENCH_LOOPS)),
              "the build has to rename the inline namespace that base/version.hpp chooses");

namespace mr = millrace::detail;

class build final : public resize_build {
 public:
  void run(resize_way way, const resize_call& c) override {
    mr::resize_plan plan{.rows = millrace::detail::plan_axis(static_cast<std::int64_t>(c.height)),
                         .columns = millrace::detail::plan_axis(static_cast<std::int64_t>(c.width))};
    plan.rows.crop(static_cast<std::int64_t>(c.top), static_cast<std::int64_t>(c.box_height));
    plan.columns.crop(static_cast<std::int64_t>(c.left), static_cast<std::int64_t>(c.box_width));
    plan.rows.resize(static_cast<std::int64_t>(c.side));
    plan.columns.resize(static_cast<std::int64_t>(c.side));
    if (c.flipped) plan.columns.flip();
    using type = mr::pixel_type;
    mr::plane_resize job{.plan = plan, .target = {.data = c.out}};
    job.fast = way == resize_way::fast_u8 || way == resize_way::fast_u8_cold;
    job.target.cold = way == resize_way::fast_u8_cold || way == resize_way::exact_u8_cold ||
                      way == resize_way::exact_f32_cold;
    if (way == resize_way::exact_f32 || way == resize_way::exact_f32_cold) job.target.type = type::f32;
    if (way == resize_way::exact_f16) job.target.type = type::f16;
    if (way == resize_way::exact_bf16) job.target.type = type::bf16;
    for (auto& s : job.target.scale) s = 1 / 57.0F;
    for (auto& b : job.target.bias) b = -2.0F;
    resizer_.start(job);
    if (way == resize_way::exact_rows) return feed(resizer_, c);
    millrace::detail::jpeg_planes planes{.component = {},
                                         .components = 3,
                                         .horizontal_sampling = c.sampling,
                                         .vertical_sampling = c.sampling,
                                         .left = 0,
                                         .top = 0,
                                         .image_width = static_cast<int>(c.width),
                                         .image_height = static_cast<int>(c.height)};
    for (std::size_t k = 0; k < 3; ++k)
      planes.component[k] = {.data = c.plane[k],
                             .stride_bytes = c.plane_width[k],
                             .width = static_cast<int>(c.plane_width[k]),
                             .height = static_cast<int>(c.plane_height[k])};
    resizer_.render(planes);
  }

 private:
  /// Acts as a decoder of rows: copies the pixels, as it would write them.
  template <class Resizer>
  static void feed(Resizer& r, const resize_call& c) {
    const std::size_t left = r.columns().source_begin(), width = r.columns().source_end() - left;
    r.set_source(left, width);
    for (std::size_t y = r.rows().source_begin(); r.wants_rows(); ++y) {
      std::memcpy(r.next_row(), c.pixels + 4 * (y * c.width + left), 4 * width);
      r.commit_row();
    }
  }

  mr::plane_resizer resizer_;
};

#ifdef __clang__
constexpr const char* compiler_name = "clang++";
#else
constexpr const char* compiler_name = "g++";
#endif

}   // namespace

extern const resize_loops MILLRACE_BENCH_LOOPS;
const resize_loops MILLRACE_BENCH_LOOPS{compiler_name, [] { return std::unique_ptr<resize_build>(new build); }};

}   // namespace bench
