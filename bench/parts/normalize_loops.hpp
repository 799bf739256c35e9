// The library's normalize() as one compiler made it, at plain -O2: see normalize_loops.cpp beside it.
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
  bool planar;                         // NCHW
};

struct normalize_loops {
  const char* compiler;
  void (*run)(const normalize_call&);
};

extern const normalize_loops main_loops;    // of the compiler that made the rest
extern const normalize_loops other_loops;   // of the other one, where MILLRACE_BENCH_OTHER_COMPILER is defined

}  // namespace bench
