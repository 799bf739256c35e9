// door: CPU time of a batch in Python's loop and in the loop in C++: two small columns, and photographs
//
//   bench_door 1 20000      # workers, batches: prints the CPU us of a batch of two small columns
//   bench_door M            # photographs: answers each number of batches with the CPU seconds since the answer before
//
// bench/door/door.py alternates it with loops in Python. An answer includes the batches that were prefetched after the
// answer before.
#include "door/numbers.hpp"
#include "harness.hpp"
#include "peers/photos.hpp"
#include "photo_sets.hpp"

#include <millrace/sources/shards.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

namespace mr = millrace;

namespace {

void measure_numbers(int workers, int batches) {
  mr::session run{bench::numbers(4), {.epochs = mr::endless, .threads = workers, .notice = mr::quiet}};
  std::int64_t sum = 0;
  for (int i = 0; i < 1'000; ++i) sum += run.next().get<&bench::number::label>()[0];
  const bench::clocks before = bench::now();
  for (int i = 0; i < batches; ++i) sum += run.next().get<&bench::number::label>()[0];
  const double cpu_s = (bench::now() - before).cpu_s;
  if (sum < 0) std::printf("skipped: a label is negative\n");   // keeps the reads
  std::printf("%.4f\n", 1e6 * cpu_s / batches);
}

void answer_photos(const bench::photo_set& set) {
  mr::session run{bench::crops<bench::u8_crop>(mr::shards(set.names, {.seed = 7, .index = mr::index::off}), 256),
                  {.epochs = mr::endless, .threads = 2, .notice = mr::quiet}};
  bench::clocks before = bench::now();
  std::uint64_t sum = 0;
  for (std::string line; std::getline(std::cin, line);) {
    for (int i = std::atoi(line.c_str()); i > 0; --i) {
      const auto b = run.next();
      const auto bytes = b.get<&bench::u8_crop::pixels>().host();
      for (std::size_t at = 0; at < bytes.size(); at += 4'096) sum += bytes[at];
    }
    const bench::clocks spent = bench::now() - before;
    before = bench::now();
    std::printf("%.6f %d\n", spent.cpu_s, static_cast<int>(sum % 10));
    std::fflush(stdout);
  }
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    if (argc == 3) return measure_numbers(std::atoi(argv[1]), std::atoi(argv[2])), 0;
    for (const auto& recipe : bench::photo_sets)
      if (argc == 2 && argv[1] == std::string_view(recipe.name)) return answer_photos(bench::make_photo_set(recipe)), 0;
    throw mr::setup_error("bench_door needs two numbers or a set", "See the head of bench/door.cpp");
  });
}
