// The bottleneck of a training by its ablations alone: the rate that each part reaches without the others.
//
//   bench::ablation_verdict v = bench::judge_ablations({.step = 400, .transfer = 9'000, .cpu = 310, .io = 2'000, ...});
//   v.what;  v.where;  v.margin;          // comparable with the verdict of the live run
//
// Rates in samples per second. The lowest part is the bottleneck; within 10 % of the next one the two are balanced. The
// work of I/O threads counts as I/O unless reading without unpacking is more than 1.5 times as fast; then as CPU work.
#pragma once

#include <millrace/report/verdict/verdict.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace bench {

struct ablated_rates {
  double step = 0, transfer = 0, cpu = 0, io = 0, raw_read = 0;
};

struct ablation_verdict {
  millrace::bound_by what = millrace::bound_by::unknown;
  std::string where{}, next{};
  double margin = 1;
  std::array<millrace::bound_by, 2> lowest{};   ///< the kinds of the lowest two parts

  std::string sentence() const {
    millrace::verdict v{.what = what, .where = where, .next = next, .margin = margin};
    return v.sentence();
  }
};

inline ablation_verdict judge_ablations(const ablated_rates& r) {
  const bool unpacks = r.raw_read > 1.5 * r.io;
  using millrace::bound_by;
  struct part {
    double rate;
    const char* name;
    bound_by what;
  };
  std::array<part, 4> phases{{{r.step, "step", bound_by::consumer},
                              {r.transfer, "copy", bound_by::transfer},
                              {r.cpu, "decode", bound_by::cpu},
                              {r.io, unpacks ? "unpack" : "read", unpacks ? bound_by::cpu : bound_by::io}}};
  std::sort(phases.begin(), phases.end(), [](const part& a, const part& b) { return a.rate < b.rate; });
  ablation_verdict v{phases[0].what,
                     phases[0].name,
                     phases[1].name,
                     phases[1].rate / phases[0].rate,
                     {phases[0].what, phases[1].what}};
  if (v.margin < 1.10) v.what = bound_by::balanced;
  return v;
}

/// Returns whether the verdicts agree. Starved workers count as CPU-bound. The live run may name either of two balanced
/// parts, and may report balance between parts within a quarter of each other.
inline bool agree(const ablation_verdict& a, const millrace::verdict& live) {
  using millrace::bound_by;
  const auto group = [](bound_by w) { return w == bound_by::cpu_starved ? bound_by::cpu : w; };
  if (live.what == bound_by::balanced) return a.margin < 1.25;
  if (a.what == bound_by::balanced) return group(live.what) == a.lowest[0] || group(live.what) == a.lowest[1];
  return group(a.what) == group(live.what);
}

}   // namespace bench
