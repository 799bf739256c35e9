// Counts values by size during the run, for example service times and waits. The memory is fixed; recording uses no
// lock and never waits.
//
//   mr::detail::histogram reads;
//   reads.record(spent_ns);              // any number of threads
//   mr::detail::own_histogram work;      // one for each worker:
//   work.record(spent_ns);               // only its owner records, any thread creates snapshots
//   double p99 = reads.snapshot().quantile(0.99);
//
// measure/values/distribution.hpp describes the buckets and their accuracy. An object has 5 KiB. Recording costs two
// atomic additions in `histogram`, and two loads and two stores in `own_histogram`. Errors: none.
// Threads: any thread may call snapshot() at any time. A snapshot may miss a value that is being recorded. If one
// thread creates two snapshots, the later one never has a smaller count.
#pragma once

#include <millrace/measure/values/distribution.hpp>

#include <atomic>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// `shared` is true if several threads record.
template <bool shared>
class basic_histogram {
 public:
  void record(std::uint64_t value, std::uint64_t times = 1) noexcept {
    add(counts_[distribution::bucket_of(value)], times);
    add(sum_, value * times);
  }

  distribution snapshot() const noexcept {
    distribution now;
    for (std::size_t i = 0; i < distribution::buckets; ++i)
      now.set_bucket(i, counts_[i].load(std::memory_order_relaxed));
    now.set_sum(sum_.load(std::memory_order_relaxed));
    return now;
  }

 private:
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
    if constexpr (shared) counter.fetch_add(n, std::memory_order_relaxed);
    else counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  // Aligned to cache lines, so that the counters of different workers are never on the same line.
  alignas(64) std::array<std::atomic<std::uint64_t>, distribution::buckets> counts_;   // atomics start at 0
  std::atomic<std::uint64_t> sum_{0};
};

/// A histogram for any number of recording threads.
using histogram = basic_histogram<true>;
/// A histogram for one recording thread at a time.
using own_histogram = basic_histogram<false>;

}}}   // namespace millrace::detail
