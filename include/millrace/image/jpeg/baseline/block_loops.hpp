// Decodes the blocks of a baseline JPEG with the loops of block_stream.hpp. The loops are compiled for several types of
// processors; best() returns the loops for the current processor.
//
//   const auto loops = mr::detail::block_loops::best();
//   loops.run(stream);                           // until its segment ends
//   loops.run(stream, other);                    // for two streams: until one of the two segments ends
//
// A loop decodes one or two streams; a stream decodes one JPEG. Each stream either stores the coefficients of its
// blocks, or skips the blocks: then it only finds their ends. The functions of bmi2_loops have an attribute with their
// instruction set (BMI2). Therefore every build for x86-64 contains them, even if its compiler flags do not allow BMI2.
// Threads: any; calls share no state.
#pragma once

#include <millrace/image/jpeg/baseline/block_stream.hpp>
#include <millrace/simd/cpu_features.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The loops, compiled for the instruction set of the build.
template <class Steps>
struct plain_loops {
  static void store(block_stream& a) { run_block_loop<Steps, true>(a); }
  static void skip(block_stream& a) { run_block_loop<Steps, false>(a); }
  static void store_store(block_stream& a, block_stream& b) { run_block_loop<Steps, true, true>(a, b); }
  static void skip_store(block_stream& a, block_stream& b) { run_block_loop<Steps, false, true>(a, b); }
  static void skip_skip(block_stream& a, block_stream& b) { run_block_loop<Steps, false, false>(a, b); }
};

#ifdef __x86_64__
struct bmi2_loops {
  [[gnu::target("bmi,bmi2")]] static void store(block_stream& a) { run_block_loop<x86_huffman_steps, true>(a); }
  [[gnu::target("bmi,bmi2")]] static void skip(block_stream& a) { run_block_loop<x86_huffman_steps, false>(a); }
  [[gnu::target("bmi,bmi2")]] static void store_store(block_stream& a, block_stream& b) {
    run_block_loop<x86_huffman_steps, true, true>(a, b);
  }
  [[gnu::target("bmi,bmi2")]] static void skip_store(block_stream& a, block_stream& b) {
    run_block_loop<x86_huffman_steps, false, true>(a, b);
  }
  [[gnu::target("bmi,bmi2")]] static void skip_skip(block_stream& a, block_stream& b) {
    run_block_loop<x86_huffman_steps, false, false>(a, b);
  }
};
#endif

class block_loops {
 public:
  static block_loops portable() noexcept { return of<plain_loops<portable_huffman_steps>>(); }
  static block_loops best() noexcept {
#ifdef __x86_64__
    if (cpu_has_bit_manipulation()) return of<bmi2_loops>();
#endif
#ifdef __aarch64__
    return of<plain_loops<arm_huffman_steps>>();
#else
    return portable();
#endif
  }

  void run(block_stream& a) const { (a.store ? store_ : skip_)(a); }
  void run(block_stream& a, block_stream& b) const {
    if (a.store == b.store) return (a.store ? store_store_ : skip_skip_)(a, b);
    a.store ? skip_store_(b, a) : skip_store_(a, b);
  }

 private:
  using one = void (*)(block_stream&);
  using two = void (*)(block_stream&, block_stream&);

  template <class Loops>
  static block_loops of() noexcept {
    block_loops loops;
    loops.store_ = Loops::store;
    loops.skip_ = Loops::skip;
    loops.store_store_ = Loops::store_store;
    loops.skip_store_ = Loops::skip_store;
    loops.skip_skip_ = Loops::skip_skip;
    return loops;
  }

  one store_ = nullptr, skip_ = nullptr;
  two store_store_ = nullptr, skip_store_ = nullptr, skip_skip_ = nullptr;
};

}}}   // namespace millrace::detail
