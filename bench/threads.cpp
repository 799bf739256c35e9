// threads: the pipeline with 1, 2, 4 ... workers up to the machine's cores, and with more than that on a small machine
//
// Photographs, order and pixels are the same for every number of workers; the numbers alternate within a round.
// Efficiency is the rate of a core with n workers as a share of its rate with one: by wall time, and by CPU time per
// image, which depends less on other programs. The counted epochs follow a warm-up that uses every buffer.
#include "harness.hpp"
#include "photo_example.hpp"
#include "photo_sets.hpp"

#include <millrace/millrace.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

using example = bench::photo_example;

constexpr std::size_t batch_rows = 256;

struct outcome {
  double cpu_us = 0, rate = 0;   // per image; images per second of wall time
  std::uint64_t first_bytes = 0;
};

struct task {
  const bench::photo_set& set;
  std::uint64_t warm_epochs, epochs;
};

outcome run_with(const task& t, unsigned workers) {
  mr::session run{mr::shards(t.set.names, {.seed = 7, .index = mr::index::off}) | mr::shuffle({.window = 512}) |
                      mr::map(bench::prepare_photo) |
                      mr::batch<&example::pixels, &example::label>({.size = batch_rows}),
                  {.epochs = mr::endless,
                   .threads = static_cast<int>(workers),
                   .read_ahead_bytes = std::size_t{24} << 20,   // full from the warm-up on
                   .notice = mr::quiet}};
  const std::uint64_t epoch_batches = t.set.samples / batch_rows;
  outcome result;
  // Reads one byte of each page, as a copy to a device would touch the host's memory, but without its cost.
  const auto pass = [&](std::uint64_t epochs) {
    for (std::uint64_t i = 0; i < epochs * epoch_batches; ++i) {
      const auto b = run.next();
      const auto pixels = b.get<&example::pixels>().host();
      for (std::size_t at = 0; at < pixels.size(); at += 4'096) result.first_bytes += pixels[at];
    }
  };
  pass(t.warm_epochs);
  const bench::clocks before = bench::now();
  pass(t.epochs);
  const bench::clocks spent = bench::now() - before;
  const auto images = static_cast<double>(t.epochs * epoch_batches * batch_rows);
  result.cpu_us = 1e6 * spent.cpu_s / images;
  result.rate = images / spent.wall_s;
  return result;
}

/// 1, 2, 4 ... and the number of cores; on small machines also 16 and 64.
std::set<unsigned> worker_counts(unsigned cores) {
  std::set<unsigned> counts{1, cores};
  for (unsigned n = 2; n < cores; n *= 2) counts.insert(n);
  if (cores < 16) counts.insert({16, 64});
  return counts;
}

void measure(bench::harness& run, const char* name, const task& t, int rounds) {
  const unsigned cores = mr::usable_cores();
  const std::set<unsigned> counts = worker_counts(cores);
  std::map<unsigned, std::vector<double>> cpu, rate, cpu_of_cores, rate_of_cores;
  std::uint64_t sum = 0;
  for (int i = 0; i < rounds; ++i) {
    std::map<unsigned, outcome> now;
    for (const unsigned n : counts) {
      now[n] = run_with(t, n);
      if (sum != 0 && sum != now[n].first_bytes)
        throw mr::setup_error("the pixels depend on the number of workers", "Compare the order of the samples");
      sum = now[n].first_bytes;
    }
    for (const auto& [n, o] : now) {
      cpu[n].push_back(o.cpu_us);
      rate[n].push_back(o.rate);
      cpu_of_cores[n].push_back(100 * o.cpu_us / now[cores].cpu_us);
      rate_of_cores[n].push_back(100 * o.rate / now[cores].rate);
    }
  }
  std::printf("\n%s, batch %zu, %u cores: %d rounds of %llu images\n", name, batch_rows, cores, rounds,
              static_cast<unsigned long long>(t.epochs * t.set.samples));
  std::printf("  workers  images/s                   CPU us per image      efficiency: wall, CPU\n");
  for (const unsigned n : counts) {
    const double used_cores = std::min(n, cores);
    std::printf("  %7u  %-25s  %-20s  %.0f %%, %.0f %%\n", n, bench::spread(rate[n], "%.0f").c_str(),
                bench::spread(cpu[n], "%.0f").c_str(),
                100 * bench::median(rate[n]) / (used_cores * bench::median(rate[1])),
                100 * bench::median(cpu[1]) / bench::median(cpu[n]));
  }
  for (const unsigned n : counts) {
    const std::string which = std::string(name) + "_workers_" + std::to_string(n);
    run.result("threads_rate_" + which, bench::median(rate[n]), "images/s");
    run.result("threads_cpu_" + which, bench::median(cpu[n]), "us/image");
    if (n <= cores) continue;
    // Relative to the same round with as many workers as cores.
    run.result("threads_rate_of_cores_" + which, bench::median(rate_of_cores[n]), "%", bench::at_least(95));
    run.result("threads_cpu_of_cores_" + which, bench::median(cpu_of_cores[n]), "%", bench::at_most(105));
  }
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "threads");
    for (const auto& recipe : bench::photo_sets) {
      if (!run.wants(recipe.name) || (run.quick() && std::string_view(recipe.name) != "M")) continue;
      const bench::photo_set set = bench::make_photo_set(recipe);
      measure(run, recipe.name, {.set = set, .warm_epochs = 2, .epochs = run.quick() ? 4U : 8U}, run.quick() ? 3 : 9);
    }
    return run.finish();
  });
}
