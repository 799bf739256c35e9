// The kernels of metrics.cuh: sums of values, ranks of targets, groups of both, and the hand-over of the sums.
//
//   launch(sum_values<float>{losses, batch_size, weight, largest_metric_addend(weight), totals}, {.stream = s});
//   launch(metric_rank_rows<bf16, std::int32_t>{...}, {.blocks = rank_rows_blocks(rows), .stream = s});
//   launch(store_metric_totals{totals, slot, metrics, true}, {.stream = s});
//
// Values are added up in a fixed order. Therefore equal runs return equal bits. The counts of ranks do not depend on an
// order. Loads are 16 bytes wide from the first aligned element on.
// Errors: a kernel cannot throw. Therefore it counts labels that are not a class, and omits their rows.
// Threads: as in device/kernel.cuh.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/device/kernel.cuh>
#include <millrace/train/device_sums.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Calls f(element, index) for one thread's share of an array.
template <class T, class F>
MILLRACE_BOTH_SIDES void for_each_metric_share(const T* data, std::size_t count, unsigned thread, unsigned threads,
                                               const F& f) {
  constexpr std::size_t width = 16 / sizeof(T);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(data) % 16 / sizeof(T);
  std::size_t head = past == 0 ? 0 : width - past;
  if (head > count) head = count;
  const std::size_t packs = (count - head) / width;
  if (thread < head) f(to_float(data[thread]), thread);
  for (std::size_t p = thread; p < packs; p += threads) {
    const std::size_t at = head + p * width;
    const auto loaded = load_pack<width>(data + at);
    for (std::size_t j = 0; j < width; ++j) f(to_float(loaded.values[j]), at + j);
  }
  const std::size_t rest = head + packs * width + thread;
  if (rest < count) f(to_float(data[rest]), rest);
}

/// Adds up values of equal weight. A single block adds its sum to the totals. Several blocks write parts, which
/// merge_metric_parts adds to the totals.
template <class T>
struct sum_values {
  static constexpr unsigned threads = 256;

  const T* values;
  std::size_t count;
  double weight;
  float limit;         // largest_metric_addend(weight)
  metric_totals* to;   // the totals, or the parts

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    const metric_totals all = team.reduce([&](unsigned t) {
      metric_totals mine;
      double sum = 0;
      std::uint64_t added = 0;
      for_each_metric_share(values, count, team.block() * threads + t, team.blocks() * threads,
                            [&](float value, std::size_t) {
                              const bool adds = value >= -limit && value <= limit;   // false for NaN
                              sum += adds ? static_cast<double>(value) : 0.0;
                              added += adds;
                              mine.nonfinite += !adds;
                            });
      if (added == 0) return mine;
      mine.sum = sum * weight;
      mine.weight = static_cast<double>(added) * weight;
      return mine;
    });
    team.once([&] { team.blocks() == 1 ? to->merge(all) : static_cast<void>(to[team.block()] = all); });
  }
};

/// Adds the parts of sum_values to the totals in a fixed order; runs as one block.
struct merge_metric_parts {
  static constexpr unsigned threads = 256;

  const metric_totals* parts;
  unsigned count;   // at most `threads`
  metric_totals* to;

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    const metric_totals all = team.reduce([&](unsigned t) { return t < count ? parts[t] : metric_totals{}; });
    team.once([&] { to->merge(all); });
  }
};

/// Returns the number of blocks for sum_values: one for the losses of a batch, more for the losses of tokens or pixels.
inline unsigned sum_values_blocks(std::size_t count) noexcept {
  constexpr std::size_t values_of_block = 4096;
  return static_cast<unsigned>(
      std::clamp<std::size_t>((count + values_of_block - 1) / values_of_block, 1, merge_metric_parts::threads));
}

/// Returns the largest f32 whose product with the weight is finite; -1 for a weight that is not finite.
inline float largest_metric_addend(double weight) noexcept {
  constexpr double largest = std::numeric_limits<float>::max();
  if (!is_finite(weight)) return -1;
  const auto rounded = static_cast<float>(
      std::min(largest, std::numeric_limits<double>::max() / (weight < 0 ? -weight : weight)));
  return is_finite(static_cast<double>(rounded) * weight) ? rounded : std::nextafter(rounded, 0.0F);
}

/// Ranks the target of each row of logits; one block processes one row at a time.
template <class T, class Label, unsigned Threads = 128>
struct metric_rank_rows {
  static constexpr unsigned threads = Threads;

  const T* logits;
  const Label* labels;
  std::size_t rows, classes, top_k;
  metric_totals* to;

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    metric_totals mine;   // totals of this block; valid in the thread that runs once()
    for (std::size_t row = team.block(); row < rows; row += team.blocks()) {
      const Label label = labels[row];
      if (label < 0 || static_cast<std::uint64_t>(label) >= classes) {
        ++mine.bad_labels;
        continue;
      }
      const T* const line = logits + row * classes;
      const float target = to_float(line[label]);
      const metric_rank_part all = team.reduce([&](unsigned t) {
        metric_rank_part part;
        for_each_metric_share(line, classes, t, threads, [&](float logit, std::size_t c) {
          part.take(logit, target, c < static_cast<std::size_t>(label));
        });
        return part;
      });
      ++mine.count;
      mine.correct_1 += all.rank() == 0;
      mine.correct_k += all.rank() < top_k;
      mine.nonfinite += all.nans > 0;
    }
    team.once([&] {
      team.add(to->count, mine.count);
      team.add(to->correct_1, mine.correct_1);
      team.add(to->correct_k, mine.correct_k);
      team.add(to->nonfinite, mine.nonfinite);
      team.add(to->bad_labels, mine.bad_labels);
    });
  }
};

/// Returns the number of blocks. If there are more rows than blocks, a block processes several rows.
inline unsigned rank_rows_blocks(std::size_t rows) noexcept {
  return static_cast<unsigned>(std::min<std::size_t>(rows, 2048));
}

/// One add of a group: the members of sum_values, of metric_rank_rows or of merge_metric_parts.
struct grouped_add {
  enum class work : std::uint8_t { values, ranks, wide_ranks, parts };

  const void* data = nullptr;   // values, logits or parts
  const void* labels = nullptr;
  std::size_t count = 0;   // number of values, rows or parts
  std::size_t classes = 0, top_k = 0;
  double weight = 1;
  metric_totals* to = nullptr;
  metric_totals* parts = nullptr;   // of values that several blocks add up
  float limit = 0;
  unsigned blocks = 1;
  number_kind kind = number_kind::f32;
  work what = work::values;
};

/// Several adds as one kernel. Each add has its own blocks, and produces the same bits as a separate kernel. No two
/// adds may have the same totals.
struct add_group {
  static constexpr unsigned threads = 256, max_adds = 8;

  grouped_add adds[max_adds];
  unsigned count = 0;

  unsigned blocks() const noexcept {
    unsigned sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += adds[i].blocks;
    return sum;
  }

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    unsigned i = 0, first = 0;
    while (i + 1 < count && team.block() >= first + adds[i].blocks) first += adds[i++].blocks;
    const auto own = team.part(first, adds[i].blocks);
    switch (adds[i].kind) {
      case number_kind::f32: return run<float>(adds[i], own);
      case number_kind::f16: return run<f16>(adds[i], own);
      case number_kind::bf16: return run<bf16>(adds[i], own);
    }
  }

 private:
  template <class T>
  static MILLRACE_BOTH_SIDES void run(const grouped_add& a, const auto& team) {
    const auto* const numbers = static_cast<const T*>(a.data);
    switch (a.what) {
      case grouped_add::work::values:
        return sum_values<T>{numbers, a.count, a.weight, a.limit, a.parts ? a.parts : a.to}(team);
      case grouped_add::work::ranks: return rank<T, std::int32_t>(a, team);
      case grouped_add::work::wide_ranks: return rank<T, std::int64_t>(a, team);
      case grouped_add::work::parts:
        return merge_metric_parts{static_cast<const metric_totals*>(a.data), static_cast<unsigned>(a.count),
                                  a.to}(team);
    }
  }
  template <class T, class Label>
  static MILLRACE_BOTH_SIDES void rank(const grouped_add& a, const auto& team) {
    metric_rank_rows<T, Label, threads>{
        static_cast<const T*>(a.data), static_cast<const Label*>(a.labels), a.count, a.classes, a.top_k, a.to}(team);
  }
};

/// Moves the totals into a slot. This is a kernel in the step's stream, because a copy in another stream would read
/// partial sums.
struct store_metric_totals {
  static constexpr unsigned threads = 32;

  metric_totals* from;
  metric_totals* to;   // null if the totals are only cleared
  std::size_t count;
  bool clears;

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    team.each([&](unsigned t) {
      for (std::size_t i = t; i < count; i += threads) {
        if (to) to[i] = from[i];
        if (clears) from[i] = metric_totals{};
      }
    });
  }
};

}}}   // namespace millrace::detail
