// Decides when a reader passes a chunk of samples to the workers before the chunk is full.
//
//   mr::detail::chunk_clock clock(mr::detail::steady_now_ns());
//   do read_one();
//   while (!clock.ends_chunk([] { return workers_are_idle(); }));
//
// If the workers are idle and a read is slow, they get its samples early. If the workers are busy, they get full
// chunks, or a quarter of a chunk if the read is slow. The clock is checked only after 1, 4, 16 and 64 samples. This is
// sufficient: it delays a sample by at most three times the time since the chunk began.
// Errors: none. Threads: not synchronized. Cost: one comparison for most samples.
#pragma once

#include <millrace/base/clock.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The time since a chunk began, and its number of samples.
class chunk_clock {
 public:
  static constexpr std::size_t full_samples = 256;   ///< number of samples of a full chunk
  static constexpr std::uint64_t idle_ns = 20'000, long_ns = 1'000'000;

  explicit chunk_clock(std::uint64_t start_ns) noexcept : start_ns_(start_ns) {}

  /// Counts a sample, and returns whether the chunk ends with it. `workers_idle` returns whether the workers are idle.
  template <class Idle, class Now = decltype(&steady_now_ns)>
  bool ends_chunk(const Idle& workers_idle, const Now& now_ns = &steady_now_ns) {
    if (++samples_ != next_check_) return false;
    next_check_ *= 4;
    const bool idle = workers_idle();
    if (!idle && samples_ < full_samples / 4) return false;
    return now_ns() - start_ns_ > (idle ? idle_ns : long_ns);
  }

 private:
  std::uint64_t start_ns_;
  std::size_t samples_ = 0, next_check_ = 1;
};

}}}  // namespace millrace::detail
