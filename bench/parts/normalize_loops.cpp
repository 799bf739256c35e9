// Compiled once by each available compiler, and both objects are linked into one program. Each build has its own inline
// namespace (-Dv0_1=...), or the linker would keep one compiler's functions and drop the other's.
#include "normalize_loops.hpp"

#include <millrace/device/normalize.hpp>

#include <string_view>

#define MILLRACE_BENCH_TEXT_OF(x) #x
#define MILLRACE_BENCH_TEXT(x) MILLRACE_BENCH_TEXT_OF(x)

namespace bench {
namespace {

static_assert(std::string_view(MILLRACE_BENCH_TEXT(MILLRACE_ABI)).ends_with(MILLRACE_BENCH_TEXT(MILLRACE_BENCH_LOOPS)),
              "the build has to rename the inline namespace that base/version.hpp chooses");

namespace mr = millrace;

template <class T>
void normalize_to(const normalize_call& c) {
  const mr::tensor_view<const std::uint8_t, 4> pixels{.data = c.pixels, .shape = {c.images, c.height, c.width, 3}};
  mr::tensor_view<T, 4> numbers{.data = static_cast<T*>(c.numbers), .shape = {c.images, c.height, c.width, 3}};
  if (c.planar) numbers.shape = {c.images, 3, c.height, c.width};
  mr::normalize(pixels, numbers,
                {.mean = {0.485, 0.456, 0.406},
                 .std = {0.229, 0.224, 0.225},
                 .layout = c.planar ? mr::image_layout::nchw : mr::image_layout::nhwc});
}

void run_loops(const normalize_call& c) {
  switch (c.type) {
    case number::f32: return normalize_to<float>(c);
    case number::f16: return normalize_to<mr::f16>(c);
    default: return normalize_to<mr::bf16>(c);
  }
}

#ifdef __clang__
constexpr const char* compiler_name = "clang++";
#else
constexpr const char* compiler_name = "g++";
#endif

}   // namespace

extern const normalize_loops MILLRACE_BENCH_LOOPS;
const normalize_loops MILLRACE_BENCH_LOOPS{compiler_name, run_loops};

}   // namespace bench
