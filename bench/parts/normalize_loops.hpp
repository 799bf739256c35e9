// The library's normalize() as compiled by one compiler at plain -O2: see normalize_loops.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

enum class number { f32, f16, bf16 };

struct normalize_call {
  const std::uint8_t* pixels;
  void* numbers;
  std::size_t images, height, width;   // three channels
  number type;
  bool planar;   // NCHW
};

struct normalize_loops {
  const char* compiler;
  void (*run)(const normalize_call&);
};

extern const normalize_loops main_loops;    // by the compiler of the rest
extern const normalize_loops other_loops;   // by the other one, if MILLRACE_BENCH_OTHER_COMPILER is defined

}   // namespace bench
