// The loading of a sample, of a chosen length: a wait, as for storage, or computing, as for decoding.
//
//   const bench::preset_load load{.sample_s = 1.5e-3, .computes = true};
//   load(number);                                 // waits or computes that long on the calling thread
//   auto flow = mr::from(bench::endless_numbers{}) | mr::map(load) | mr::batch<&bench::loaded::row>({.size = 32});
//
// Waits overlap on any machine, so they show the behavior of a loop with as many cores as workers; computing shows that
// of this machine. Errors: none. Threads: any.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>

namespace bench {

/// A row of that many bytes that begins with its number.
struct numbered_rows {
  using element = std::uint8_t;
  std::int64_t first = 0;
  std::size_t count = 1, bytes = 3'072;

  std::array<std::size_t, 2> shape() const { return {count, bytes}; }
  void render(std::span<element> rows) const {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t number = first + static_cast<std::int64_t>(i);
      const auto head = reinterpret_cast<const std::uint8_t*>(&number);
      std::copy_n(head, sizeof number, rows.begin() + static_cast<std::ptrdiff_t>(i * bytes));
    }
  }
};

struct loaded {
  numbered_rows row;
};

struct preset_load {
  double sample_s = 0;
  bool computes = false;
  std::size_t samples = 1;   // of an item: a complete batch if each worker builds batches

  void one() const {
    const auto ns = static_cast<std::int64_t>(1e9 * sample_s);
    if (!computes) return std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    // CPU time, so that the time of neighbors on the machine does not count.
    const std::int64_t start = millrace::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (millrace::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < ns) {
    }
  }
  loaded operator()(std::int64_t number) const {
    for (std::size_t i = 0; i < samples; ++i) one();
    return {{.first = number * static_cast<std::int64_t>(samples), .count = samples}};
  }
};

/// 0, 1, 2 ...
struct endless_numbers {
  using item = std::int64_t;
  struct reader {
    std::int64_t at;
    std::optional<item> next() { return at++; }
  };
  static std::size_t shards() { return 1; }
  static reader open(std::size_t, std::uint64_t) { return {0}; }
};

}  // namespace bench
