// What limits a training, by its ablations alone: what each part can do when it is all there is.
//
//   bench::ablation_verdict v = bench::judge_ablations({.step = 400, .transfer = 9'000, .cpu = 310, .io = 2'000, ...});
//   v.what;  v.where;  v.margin;          // comparable with the verdict of the live figures
//
// Rates in samples per second. The lowest part limits; within 10 % of the next one the two are balanced. What the I/O
// threads do is I/O where reading alone, without unpacking, is not at least half again as fast; else processor work.
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
  std::array<millrace::bound_by, 2> lowest{};   ///< what the lowest two parts are by themselves

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
  ablation_verdict v{phases[0].what, phases[0].name, phases[1].name, phases[1].rate / phases[0].rate,
                     {phases[0].what, phases[1].what}};
  if (v.margin < 1.10) v.what = bound_by::balanced;
  return v;
}

/// Workers that are held back are processor-bound too. Of two balanced parts the live run may name either, and call
/// balanced what lies within a quarter.
inline bool agree(const ablation_verdict& a, const millrace::verdict& live) {
  using millrace::bound_by;
  const auto group = [](bound_by w) { return w == bound_by::cpu_starved ? bound_by::cpu : w; };
  if (live.what == bound_by::balanced) return a.margin < 1.25;
  if (a.what == bound_by::balanced) return group(live.what) == a.lowest[0] || group(live.what) == a.lowest[1];
  return group(a.what) == group(live.what);
}

}  // namespace bench
