// The library's resizer as compiled by one compiler at plain -O2: see resize_loops.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace bench {

/// One image to be resized to side x side: its planes, 4:2:0 or 4:4:4, and its RGBX pixels.
struct resize_call {
  const std::uint8_t* plane[3];
  std::size_t plane_width[3], plane_height[3];   ///< also the distance between rows
  int sampling;                                  ///< 1 or 2, on both axes
  const std::uint8_t* pixels;
  std::size_t width, height;
  std::size_t left, top, box_width, box_height;
  bool flipped;
  std::size_t side;
  void* out;
};

enum class resize_way {
  exact_rows,   ///< from RGBX rows
  exact_u8,
  exact_u8_cold,
  exact_f32,
  exact_f32_cold,
  exact_f16,
  exact_bf16,
  fast_u8,
  fast_u8_cold,
};

class resize_build {
 public:
  virtual ~resize_build() = default;
  virtual void run(resize_way way, const resize_call& call) = 0;
};

struct resize_loops {
  const char* compiler;
  std::unique_ptr<resize_build> (*make)();
};

extern const resize_loops main_loops;    // by the compiler of the rest
extern const resize_loops other_loops;   // by the other one, if MILLRACE_BENCH_OTHER_COMPILER is defined

}   // namespace bench
