// normalize: u8 pixels to f32, f16 and bf16, NHWC and NCHW, at plain -O2 of both compilers, against memcpy
//
// Speed is bytes read plus bytes written per second of CPU time. Values of e bytes for n pixels move n (1 + e) bytes,
// so memcpy copies n (1 + e) / 2 bytes to move as many. A copy of the result, n e bytes, would be an easier baseline,
// because normalize reads less than such a copy does; it is printed without a target. Each measurement is followed by
// one of memcpy, and the ratio is that of such pairs.
#include "harness.hpp"
#include "parts/normalize_loops.hpp"

#include <cstring>
#include <memory>
#include <string>

namespace {

using bench::number;

#ifdef MILLRACE_BENCH_OTHER_COMPILER
const bench::normalize_loops* const builds[] = {&bench::main_loops, &bench::other_loops};
#else
const bench::normalize_loops* const builds[] = {&bench::main_loops};
#endif

constexpr std::size_t side = 224, image_numbers = side * side * 3;

struct free_memory {
  void operator()(void* p) const noexcept { std::free(p); }
};
using memory = std::unique_ptr<std::uint8_t[], free_memory>;

/// Allocates and writes a block, so that the kernel allocates no pages during a measurement.
memory filled_memory(std::size_t bytes) {
  memory block(static_cast<std::uint8_t*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
  if (!block) throw std::bad_alloc();
  for (std::size_t i = 0; i < bytes; ++i) block[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
  return block;
}

template <class Work>
double cpu_seconds(const Work& work) {
  const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  work();
  return bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
}

void copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  asm volatile("" : : "r"(to) : "memory");   // keeps the copy, which is never read
}

struct kind {
  const char* name;
  number type;
  std::size_t bytes;
};
constexpr kind kinds[] = {{"f32", number::f32, 4}, {"f16", number::f16, 2}, {"bf16", number::bf16, 2}};

void measure(bench::harness& run, std::size_t images, int rounds, int repeats, bool has_target) {
  const std::size_t numbers = images * image_numbers;
  const memory pixels = filled_memory(numbers), out = filled_memory(4 * numbers), source = filled_memory(4 * numbers);
  std::printf("\n%zu images of 224 x 224 x 3: %.0f MB of pixels; GB/s read and written, median of %d\n", images,
              static_cast<double>(numbers) / 1e6, rounds);
  for (const kind& k : kinds) {
    struct variant {
      const bench::normalize_loops* build;
      bool planar;
      std::vector<double> speed{}, share{}, of_result_copy{};
    };
    std::vector<variant> variants;
    for (const auto* build : builds)
      for (const bool planar : {false, true}) variants.push_back({build, planar});
    const std::size_t moved = numbers * (1 + k.bytes);
    std::vector<double> copy_speed;
    for (int round = -1; round < rounds; ++round)   // round -1 is a warm-up
      for (auto& v : variants) {
        const auto repeated = [&](const auto& work) {
          return cpu_seconds([&] {
            for (int i = 0; i < repeats; ++i) work();
          });
        };
        const double own = repeated([&] {
          v.build->run({.pixels = pixels.get(),
                        .numbers = out.get(),
                        .images = images,
                        .height = side,
                        .width = side,
                        .type = k.type,
                        .planar = v.planar});
        });
        const double same_bytes = repeated([&] { copy(out.get(), source.get(), moved / 2); });
        const double result_bytes = repeated([&] { copy(out.get(), source.get(), numbers * k.bytes); });
        if (round < 0) continue;
        const double bytes = static_cast<double>(moved) * repeats;
        v.speed.push_back(bytes / own / 1e9);
        copy_speed.push_back(bytes / same_bytes / 1e9);
        v.share.push_back(100 * same_bytes / own);
        v.of_result_copy.push_back(100 * result_bytes / own);
      }
    std::printf("  memcpy of %.0f MB: %s\n", static_cast<double>(moved) / 2e6, bench::spread(copy_speed).c_str());
    for (const auto& v : variants) {
      const std::string name = std::string(k.name) + (v.planar ? " NCHW " : " NHWC ") + v.build->compiler;
      std::printf("  %-18s %s; %s %% of memcpy, %s %% of copying the result\n", name.c_str(),
                  bench::spread(v.speed).c_str(), bench::spread(v.share, "%.0f").c_str(),
                  bench::spread(v.of_result_copy, "%.0f").c_str());
      run.result(
          "normalize_" + std::to_string(images) + "_" + k.name + (v.planar ? "_nchw_" : "_nhwc_") + v.build->compiler,
          bench::median(v.share), "%_of_memcpy", has_target ? bench::at_least(80) : bench::goal{});
    }
  }
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "normalize");
    // A size that fits the caches (memcpy then runs at their speed, which arithmetic does not reach), one batch, and a
    // size far beyond the caches.
    if (run.wants("cached")) measure(run, 4, run.quick() ? 15 : 51, 8, false);
    if (run.wants("batch")) measure(run, 256, run.quick() ? 7 : 21, 1, true);
    if (run.wants("large") && !run.quick()) measure(run, 1'024, 9, 1, true);
    return run.finish();
  });
}
