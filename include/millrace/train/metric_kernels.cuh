// The kernels of metrics.cuh: sums of values, ranks of targets, and the hand-over of the sums.
//
//   launch(sum_values<float>{losses, batch_size, weight, largest_addend(weight), totals}, {.stream = s});
//   launch(rank_rows<bf16, std::int32_t>{...}, {.blocks = rank_rows_blocks(rows), .stream = s});
//   launch(hand_over_totals{totals, slot, metrics, true}, {.stream = s});
//
// Values are added up in a fixed order. Therefore equal runs return equal bits. The counts of ranks do not depend on an
// order. Loads are 16 bytes wide from the first aligned element on.
// Errors: a kernel cannot throw. Therefore it counts labels that are not a class, and omits their rows.
// Threads: as in device/kernel.cuh.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/device/kernel.cuh>
#include <millrace/train/metric_totals.hpp>
#include <millrace/train/target_rank.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Calls f(element, index) for one thread's share of an array.
template <class T, class F>
MILLRACE_BOTH_SIDES void for_share(const T* data, std::size_t count, unsigned thread, unsigned threads, const F& f) {
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

/// Adds up values of equal weight. One block adds to the totals. Each of several blocks writes a part, and merge_parts
/// merges them.
template <class T>
struct sum_values {
  static constexpr unsigned threads = 256;

  const T* values;
  std::size_t count;
  double weight;
  float limit;          // largest_addend(weight)
  metric_totals* to;    // the totals, or the parts

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    const metric_totals all = team.reduce([&](unsigned t) {
      metric_totals mine;
      double sum = 0;
      std::uint64_t added = 0;
      for_share(values, count, team.block() * threads + t, team.blocks() * threads, [&](float value, std::size_t) {
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
struct merge_parts {
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
      std::clamp<std::size_t>((count + values_of_block - 1) / values_of_block, 1, merge_parts::threads));
}

/// Returns the largest f32 whose product with the weight is finite; -1 for a weight that is not finite.
inline float largest_addend(double weight) noexcept {
  constexpr double largest = std::numeric_limits<float>::max();
  if (!is_finite(weight)) return -1;
  const auto rounded =
      static_cast<float>(std::min(largest, std::numeric_limits<double>::max() / (weight < 0 ? -weight : weight)));
  return is_finite(static_cast<double>(rounded) * weight) ? rounded : std::nextafter(rounded, 0.0F);
}

/// Ranks the target of each row of logits; one block processes one row at a time.
template <class T, class Label>
struct rank_rows {
  static constexpr unsigned threads = 128;

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
      const rank_part all = team.reduce([&](unsigned t) {
        rank_part part;
        for_share(line, classes, t, threads, [&](float logit, std::size_t c) {
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

/// Returns the number of blocks. 2048 blocks fill any current GPU. For more rows than that, a block processes several
/// rows and adds to the totals once.
inline unsigned rank_rows_blocks(std::size_t rows) noexcept {
  return static_cast<unsigned>(std::min<std::size_t>(rows, 2048));
}

/// Moves the totals into a slot. It is a kernel in the step's stream because a copy in another stream would read
/// partial sums.
struct hand_over_totals {
  static constexpr unsigned threads = 32;

  metric_totals* from;
  metric_totals* to;      // null: only clears
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

}}}  // namespace millrace::detail
