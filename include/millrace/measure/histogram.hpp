// Counts values by size while the run goes on: service times, waits. Fixed memory, no lock, nothing that waits.
//
//   mr::histogram reads;
//   reads.record(spent_ns);              // any number of threads
//   mr::own_histogram work;              // one for each worker's seat:
//   work.record(spent_ns);               //   only its owner records, anyone looks
//   double p99 = reads.snapshot().quantile(0.99);
//
// measure/distribution.hpp says what the buckets are and how exact. 5 KiB. To record costs two atomic additions in
// `histogram`, two loads and stores in `own_histogram`. Errors: none. Threads: snapshot() from any, at any time; it may
// lack a value that is being recorded, and of two snapshots that one thread takes the later has no smaller count.
#pragma once

#include <millrace/measure/distribution.hpp>

#include <atomic>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// `shared`: whether several threads record.
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

  // On lines of their own: what another seat counts is never beside it.
  alignas(64) std::array<std::atomic<std::uint64_t>, distribution::buckets> counts_;   // atomics are born as 0
  std::atomic<std::uint64_t> sum_{0};
};

}  // namespace detail

using histogram = detail::basic_histogram<true>;
/// Recorded by one thread at a time.
using own_histogram = detail::basic_histogram<false>;

}}  // namespace millrace
