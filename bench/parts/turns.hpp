// Variants of work on images that alternate on groups of eight, by CPU time of this thread.
//
//   bench::variant variants[] = {{"own", [&](std::size_t i, std::size_t end) { ... }}, ...};
//   bench::take_turns(variants, images, 10);        // variants[0].least_us; variants[0].us, of each round
//
// Neighbors slow down the variant that runs at that moment, so least_us is the sum of each group's least time of all
// rounds.
#pragma once

#include "../harness.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace bench {

/// One of the alternating variants; it is called with tasks [begin, end).
struct variant {
  const char* name;
  std::function<void(std::size_t begin, std::size_t end)> run;
  std::vector<double> us{};      // per image, of each round
  std::vector<double> least{};   // CPU time of each group
  double least_us = 0;           // per image, of the groups' least times
};

inline constexpr std::size_t group_size = 8;

inline void take_turns(std::span<variant> variants, std::size_t pictures, int rounds) {
  const std::size_t groups = pictures / group_size;
  for (auto& v : variants) v.least.assign(groups, 1e9);
  for (int round = 0; round < rounds; ++round) {
    for (auto& v : variants) v.us.push_back(0);
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t i = 0; i < variants.size(); ++i) {
        variant& v = variants[(i + g + static_cast<std::size_t>(round)) % variants.size()];
        const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
        v.run(g * group_size, (g + 1) * group_size);
        const double spent = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
        v.us.back() += spent * 1e6 / static_cast<double>(groups * group_size);
        v.least[g] = std::min(v.least[g], spent);
      }
  }
  for (auto& v : variants)
    for (const double spent : v.least) v.least_us += spent * 1e6 / static_cast<double>(groups * group_size);
}

}   // namespace bench
