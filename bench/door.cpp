// door: CPU time of a batch in Python's loop and in that of C++, over the same flow of numbers
//
//   bench_door 1 20000      # workers, batches: prints the CPU us of a batch in C++
//
// bench/door/door.py alternates it with loops in Python. `peers` compares photographs.
#include "door/numbers.hpp"
#include "harness.hpp"

#include <cstdio>
#include <cstdlib>

namespace mr = millrace;

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    if (argc != 3) throw mr::setup_error("bench_door needs two numbers", "Pass workers and batches");
    const int workers = std::atoi(argv[1]), batches = std::atoi(argv[2]);
    mr::session run{bench::numbers(4), {.epochs = mr::endless, .threads = workers, .notice = mr::quiet}};
    std::int64_t sum = 0;
    for (int i = 0; i < 1'000; ++i) sum += run.next().get<&bench::number::label>()[0];
    const bench::clocks before = bench::now();
    for (int i = 0; i < batches; ++i) sum += run.next().get<&bench::number::label>()[0];
    const double cpu_s = (bench::now() - before).cpu_s;
    if (sum < 0) std::printf("skipped: a label is negative\n");   // keeps the reads
    std::printf("%.4f\n", 1e6 * cpu_s / batches);
    return 0;
  });
}
