// Searches for just enough workers and reads: from windows of a run to moves, without a thread or a clock.
//
//   mr::detail::tuning_search search({.open = {.workers = 2, .reads = 4}, .most = {.workers = 16, .reads = 32}});
//   if (auto d = search.look(window))  apply(d->to), tell(d->text());      // none: nothing to decide yet
//
// The reachable rate is the lowest of four rates (tuning_window.hpp). They are those of the step, of the stages that
// are not tuned, of all workers, and of the reads at their knee. Beyond the knee twice as many reads give little more.
// Just enough is the least number of workers and reads that reaches this rate. They are then busy 95 % of their time.
// If the trainer waits for data less than `data_wait` of its time, the search lowers the numbers. If it waits more, the
// search raises them. These rules make a search end within five moves, with at most three turns back:
// - A number that was too low, or that gained nothing, is not tried again.
// - A number that rose after a fall does not fall again.
// - After the third move no number falls while the trainer does not wait: the step may need it.
//
// If the model knows no reason for a wait, a second window has to confirm the wait.
// A search that has ended begins again after three windows in turn with one of two findings. The first: the trainer
// waits for data that more workers or reads would give. The second: the step, the work or the reads have changed by
// more than a quarter. Otherwise the numbers stay as they are.
// Errors: none. Threads: a value. Source of the law: see flow_figures.hpp. Source of just enough instead of fastest:
// the stage-based autotuning of tf.data.
#pragma once

#include <millrace/base/format.hpp>
#include <millrace/measure/flow_figures.hpp>
#include <millrace/tune/autotuner.hpp>
#include <millrace/work/segment.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

// Condenses a window of a run into a few numbers that say how many workers and reads its step needs.
//
//   mr::detail::tuning_window w = mr::detail::tuning_window_of(now - before);
//   w.rate_of_workers(6);   w.rate_of_reads(8);      // delivered samples per second that so many could keep up with
//
// Utilization law (flow_figures.hpp): n threads that work d seconds per sample can do n / d samples per second.
// One of k outstanding reads takes alone x (1 + contention x (k - 1)) seconds (measure/read_levels.hpp).
// Errors: none; work that the window did not see sets no limit. Threads: a value.

/// Figures of one window. Times are in seconds, rates in delivered samples per second.
struct tuning_window {
  static constexpr double without_limit = std::numeric_limits<double>::infinity();

  double data_wait = 0;                 ///< share of the trainer's time, or of its device's time
  double rate = 0;                      ///< delivered samples per second
  double read_rate = 0;                 ///< samples read per second, in delivered samples
  double step_rate = without_limit;     ///< rate of a step that never waits for data
  double fixed_rate = without_limit;    ///< rate of the slowest stage that is not tuned
  std::string fixed_name{};             ///< name of that stage
  double work_s = 0, all_work_s = 0;    ///< worker time of a sample: in the slowest stage, and in all stages
  bool reads = false;                   ///< enough was read to judge; false if much had been read ahead
  double reading_s = 0, unpacking_s = 0;   ///< I/O thread time of a sample
  double outstanding = 1;               ///< mean number of outstanding reads while there were any
  std::optional<double> contention{};   ///< contention of reads, 0 to 1; none: unknown
  concurrency_counts open{};            ///< workers and reads that were open

  /// Returns the rate that `n` workers can keep up with; infinite if they had no work.
  double rate_of_workers(std::size_t n) const noexcept {
    return work_s > 0 ? static_cast<double>(n) / work_s : without_limit;
  }
  /// Returns the rate that `n` reads at a time can keep up with; infinite if too little was read to judge.
  double rate_of_reads(std::size_t n) const noexcept {
    const double q = contention.value_or(0), count = static_cast<double>(n);
    const double alone_s = reading_s / (1 + q * (outstanding - 1));
    const double one_s = alone_s * (1 + q * (count - 1)) + unpacking_s;
    return reads && one_s > 0 ? count / one_s : without_limit;
  }
};

/// Returns the figures of a window `f` (flow_figures).
inline tuning_window tuning_window_of(const flow_figures& f) {
  tuning_window w;
  w.data_wait = f.data_wait_share();
  w.rate = f.samples_per_s();
  for (const stage_figures& s : f.stages) {
    const double busy_s = 1e-9 * static_cast<double>(s.busy_ns), samples = s.samples();
    const double one_s = samples > 0 ? busy_s / samples : 0;
    const auto limit = [&](double rate) {
      if (rate >= w.fixed_rate) return;
      w.fixed_rate = rate;
      w.fixed_name = s.name;
    };
    switch (s.kind) {
      case stage_kind::read:
        w.reading_s = one_s;
        w.read_rate = f.wall_ns > 0 ? samples / f.wall_s() : 0;
        w.reads = 4 * samples >= static_cast<double>(f.samples);
        w.open.reads = s.concurrency;
        break;
      case stage_kind::unpack: w.unpacking_s = one_s; break;
      case stage_kind::work:
        if (s.on_workers) {
          w.work_s = std::max(w.work_s, one_s);
          w.all_work_s += one_s;
          w.open.workers = s.concurrency;
        } else if (one_s > 0) {
          limit(static_cast<double>(s.concurrency) / one_s);
        }
        break;
      case stage_kind::copy:
        if (one_s > 0) limit(1 / one_s);
        break;
      case stage_kind::step: {
        const double step_s = f.device_gap_ns ? f.wall_s() - 1e-9 * static_cast<double>(*f.device_gap_ns) : busy_s;
        if (step_s > 0 && samples > 0) w.step_rate = samples / step_s;
        break;
      }
    }
  }
  // levels.mean_outstanding() is too low: its last level counts everything above it. For the same reason these levels
  // say little about contention if many reads ended in the last one.
  const auto& top = f.reads_at_once.at(read_levels::most);
  const stage_figures* const read = f.find(stage_kind::read);
  if (read && f.reads_at_once.busy_ns() > 0)
    w.outstanding = std::max(
        1.0, static_cast<double>(read->busy_ns) / static_cast<double>(f.reads_at_once.busy_ns()));
  if (read && 2 * top.reads < read->service_ns.count()) w.contention = f.reads_at_once.contention();
  return w;
}

}  // namespace detail

/// A decision after a window, and the reason for it.
struct tuning_decision {
  std::uint64_t batches = 0;   ///< batches delivered so far
  std::size_t moves = 0;       ///< moves of this search so far
  bool settled = false;        ///< the search has ended
  detail::concurrency_counts from{}, to{};
  double data_wait = 0;        ///< data wait in the window, as a share of the time
  std::string why{};

  /// Returns a line of text:
  /// "tuning after 60 batches: 2 -> 6 workers, 4 reads; data wait 37.0 %: the step wants 5.4 workers, 1.1 reads"
  std::string text() const {
    const auto change = [](std::size_t a, std::size_t b) {
      return (a == b ? "" : std::to_string(a) + " -> ") + std::to_string(b);
    };
    return "tuning after " + std::to_string(batches) + " batches: " + change(from.workers, to.workers) + " workers, " +
           change(from.reads, to.reads) + " reads; data wait " + detail::percent(data_wait) + ": " + why;
  }
};

namespace detail {

/// The start and the limits of a search. `data_wait` is as in tuning_options.
struct tuning_search_options {
  concurrency_counts open{}, most{};
  double data_wait = 0.02;
};

/// Decides after each window of a run.
class tuning_search {
 public:
  using options = tuning_search_options;

  explicit tuning_search(options o) : options_(o), open_(o.open), cap_(o.most) {}

  /// Returns the workers and reads that should be open now.
  const concurrency_counts& open() const noexcept { return open_; }
  /// Returns whether the search has ended.
  bool settled() const noexcept { return settled_; }

  /// Decides after a window. Returns nothing if the window gives no reason to decide.
  std::optional<tuning_decision> look(tuning_window w) {
    learn_contention(w);
    waits_in_turn_ = w.data_wait >= options_.data_wait ? waits_in_turn_ + 1 : 0;
    if (settled_ && !begins_anew(w)) return {};
    if (took_back_what_gained_nothing(w)) return decide(w, before_.open, "more gained nothing");
    const aim a = aim_for(w);
    if (waits_in_turn_ == 0) return decide(w, given_back(a), "enough: " + a.text);
    if (a.out_of_reach) return decide(w, nearer(a.least), a.text);
    const concurrency_counts more =
        within({std::max(open_.workers, a.least.workers), std::max(open_.reads, a.least.reads)});
    if (more != open_) return decide(w, more, a.text);
    if (waits_in_turn_ < 2) return {};
    return decide(w, one_more(w), "for no reason that is seen: " + a.text);
  }

 private:
  static constexpr double busy_share = 0.95;   // of workers and reads that are just enough
  static constexpr double gain_of_twice = 1.05;   // beyond the knee, twice the reads give less

  struct aim {
    concurrency_counts least{};
    bool out_of_reach = false;   // the step is faster than workers and reads can ever be
    bool tight = false;          // the open workers and reads have no spare time
    std::string text{};
  };
  struct state {
    concurrency_counts open{};
    double data_wait = 0, read_rate = 0;
    double expected_gain = 0;   // of the move that followed, as a share
  };

  /// The history of one number (workers or reads) in this search. It rises, falls, and rises once more at most.
  struct past {
    std::size_t too_few = 0;
    bool fell = false, rose_again = false;
    void move(std::size_t from, std::size_t to) noexcept {
      if (to > from) too_few = from;
      rose_again = rose_again || (to > from && fell);
      fell = fell || to < from;
    }
  };
  struct seen_reads {
    std::size_t open = 0;
    double reading_s = 0, outstanding = 1;
  };

  aim aim_for(const tuning_window& w) const {
    const std::size_t knee = knee_of(w);
    const double all_workers =
        w.all_work_s > 0 ? static_cast<double>(options_.most.workers) / w.all_work_s : tuning_window::without_limit;
    const double all_reads = w.rate_of_reads(knee);
    aim a;
    const double within_reach = std::min({w.fixed_rate, all_workers, all_reads});
    const double rate = std::min(w.step_rate, within_reach);
    a.out_of_reach = within_reach < 0.98 * w.step_rate;
    if (!a.out_of_reach) a.text = "the step";
    else if (within_reach == w.fixed_rate) a.text = w.fixed_name;
    else if (within_reach == all_workers) a.text = "all " + std::to_string(options_.most.workers) + " workers";
    else a.text = "reading";
    const double wanted = rate / busy_share;
    a.least = {least(options_.most.workers, wanted, [&](std::size_t n) { return w.rate_of_workers(n); }),
               w.reads ? least(knee, wanted, [&](std::size_t n) { return w.rate_of_reads(n); }) : open_.reads};
    a.tight = 0.97 * std::min(w.rate_of_workers(open_.workers), w.rate_of_reads(open_.reads)) < rate;
    a.text += a.out_of_reach ? " is the limit, and wants " : " wants ";
    a.text += detail::three_digits(rate * w.work_s) + " workers and " +
              (w.reads ? detail::three_digits(rate * (w.reading_s + w.unpacking_s)) : "as yet no") + " reads";
    return a;
  }

  template <class Rate>
  static std::size_t least(std::size_t most, double wanted, const Rate& rate_of) {
    std::size_t n = 1;
    while (n < most && rate_of(n) < wanted) ++n;
    return n;
  }
  /// Returns the number of reads beyond which twice as many give little more. If the contention is unknown, returns
  /// four times the open reads.
  std::size_t knee_of(const tuning_window& w) const {
    std::size_t n = 1;
    if (!w.contention) return std::min(options_.most.reads, 4 * open_.reads);
    while (n < options_.most.reads && w.rate_of_reads(2 * n) >= gain_of_twice * w.rate_of_reads(n)) ++n;
    return n;
  }
  concurrency_counts within(const concurrency_counts& wanted) const {
    return {std::clamp<std::size_t>(wanted.workers, 1, cap_.workers),
            std::clamp<std::size_t>(wanted.reads, 1, cap_.reads)};
  }
  /// Returns `wanted` if it is at least an eighth below `open`; else returns `open`.
  /// Never returns a number that was too low before. Never lowers a number that rose after a fall. Never goes below a
  /// quarter of `open`, because one window may be wrong.
  static std::size_t lowered(std::size_t open, std::size_t wanted, const past& p) {
    wanted = std::max({wanted, p.too_few + 1, open / 4});
    return !p.rose_again && wanted + std::max<std::size_t>(1, open / 8) <= open ? wanted : open;
  }
  concurrency_counts nearer(const concurrency_counts& wanted) const {
    const auto one = [](std::size_t open, std::size_t to, const past& p) {
      if (to > open) return to >= open + open / 8 ? to : open;
      return lowered(open, to, p);
    };
    return within({one(open_.workers, wanted.workers, workers_), one(open_.reads, wanted.reads, reads_)});
  }
  /// Returns lowered numbers for a window without a wait. Raises numbers that have no spare time nevertheless: what
  /// was read ahead is shrinking.
  concurrency_counts given_back(const aim& a) const {
    concurrency_counts to = open_;
    if (moves_ < 3)
      to = {lowered(open_.workers, a.least.workers, workers_), lowered(open_.reads, a.least.reads, reads_)};
    if (a.tight && !a.out_of_reach) to = {std::max(to.workers, a.least.workers), std::max(to.reads, a.least.reads)};
    return within(to);
  }
  /// Raises the number that is nearer to its limit by one; changes nothing if both are far from it.
  concurrency_counts one_more(const tuning_window& w) const {
    const double workers = w.rate_of_workers(open_.workers), reads = w.rate_of_reads(open_.reads);
    if (std::min(workers, reads) > 1.5 * w.step_rate) return open_;
    if (workers < reads) return within({open_.workers + 1, open_.reads});
    return within({open_.workers, open_.reads + 1});
  }

  /// Estimates the contention from read times at two numbers of outstanding reads. One window may not have seen both.
  void learn_contention(tuning_window& w) {
    if (!w.reads) return;
    const seen_reads now{w.open.reads, w.reading_s, w.outstanding};
    if (now.open != here_.open) before_here_ = here_;
    here_ = now;
    const double more = now.outstanding - before_here_.outstanding;
    if (before_here_.open == 0 || std::abs(more) < std::max(0.5, now.outstanding / 8)) return;
    const double slope = (now.reading_s - before_here_.reading_s) / more;
    const double alone_s = now.reading_s - slope * (now.outstanding - 1);
    const double found = alone_s > 0 ? std::clamp(slope / alone_s, 0.0, 1.0) : 1.0;
    w.contention = std::max(w.contention.value_or(0), found);   // the estimate of one window tends to be too low
  }

  bool took_back_what_gained_nothing(const tuning_window& w) {
    const double expected = std::exchange(before_.expected_gain, 0);
    if (waits_in_turn_ == 0 || !(expected >= 0.1)) return false;
    const bool workers = open_.workers > before_.open.workers, reads = open_.reads > before_.open.reads;
    // Compares shares of time, because steps are not equally long in two windows.
    const double gain = std::max((1 - w.data_wait) / (1 - before_.data_wait),
                                 reads ? w.read_rate / before_.read_rate : 0) - 1;
    if (gain > std::min(expected / 4, 0.1)) return false;
    if (workers) cap_.workers = before_.open.workers;
    if (reads) cap_.reads = before_.open.reads;
    return true;
  }

  bool begins_anew(const tuning_window& w) {
    const auto other = [](double now, double then) { return std::abs(now - then) > then / 4; };
    const bool changed = other(w.work_s, settled_at_.work_s) || other(1 / w.step_rate, 1 / settled_at_.step_rate) ||
                         (w.reads && other(w.reading_s + w.unpacking_s,
                                           settled_at_.reading_s + settled_at_.unpacking_s));
    const concurrency_counts wanted = aim_for(w).least;
    const auto less = [](std::size_t open, std::size_t now) {
      return now + std::max<std::size_t>(1, open / 4) <= open;
    };
    const bool matters = less(open_.workers, wanted.workers) || less(open_.reads, wanted.reads) ||
                         (waits_in_turn_ > 0 && within(wanted) != open_);
    changed_in_turn_ = changed && matters ? changed_in_turn_ + 1 : 0;
    if (changed_in_turn_ >= 3) {
      workers_ = reads_ = {};
      cap_ = options_.most;
    } else if (out_of_reach_ || waits_in_turn_ < 3) {
      return false;
    }
    settled_ = workers_.fell = workers_.rose_again = reads_.fell = reads_.rose_again = false;
    moves_ = 0;
    before_ = {};
    return true;
  }

  std::optional<tuning_decision> decide(const tuning_window& w, concurrency_counts to, std::string why) {
    tuning_decision d{.moves = moves_, .from = open_, .to = to, .data_wait = w.data_wait, .why = std::move(why)};
    if (to == open_ || moves_ == max_moves) {
      d.to = open_;
      settle(w);
    } else {
      d.moves = ++moves_;
      const double was = std::min({w.rate_of_workers(open_.workers), w.rate_of_reads(open_.reads), w.step_rate});
      const double then = std::min({w.rate_of_workers(to.workers), w.rate_of_reads(to.reads), w.step_rate});
      before_ = {open_, w.data_wait, w.read_rate, waits_in_turn_ > 0 ? then / was - 1 : 0};
      workers_.move(open_.workers, to.workers);
      reads_.move(open_.reads, to.reads);
      open_ = to;
      waits_in_turn_ = 0;
    }
    d.settled = settled_;
    return d;
  }
  void settle(const tuning_window& w) {
    settled_ = true;
    settled_at_ = w;
    out_of_reach_ = waits_in_turn_ > 0;
    changed_in_turn_ = 0;
    waits_in_turn_ = 0;
  }

  const options options_;
  concurrency_counts open_, cap_;   // numbers above cap_ gained nothing
  past workers_{}, reads_{};
  static constexpr std::size_t max_moves = 5;   // a run that needs more is not steady enough to tune
  std::size_t moves_ = 0, waits_in_turn_ = 0, changed_in_turn_ = 0;
  bool settled_ = false, out_of_reach_ = false;   // out_of_reach_: the trainer waits, and raising helps nothing
  state before_{};   // state before the last move
  tuning_window settled_at_{};
  seen_reads here_{}, before_here_{};   // at the current number of reads, and at the one before
};

}  // namespace detail

}}  // namespace millrace
