#include <millrace/read/stage/read_stage_base.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr = millrace;

namespace {

/// Counts 256 samples of `sample_ns` each. Returns those at which the chunk may end.
std::vector<std::size_t> ends_of(bool idle, std::uint64_t sample_ns) {
  const std::uint64_t start_ns = 5'000;
  mr::detail::chunk_clock clock(start_ns);
  std::vector<std::size_t> ends;
  for (std::size_t n = 1; n <= 256; ++n)
    if (clock.ends_chunk([&] { return idle; }, [&] { return start_ns + n * sample_ns; })) ends.push_back(n);
  return ends;
}

}  // namespace

TEST_CASE("idle workers get a chunk that lasts longer than 20 us, after 1, 4, 16, 64 or 256 samples") {
  CHECK(ends_of(true, 20'001) == std::vector<std::size_t>{1, 4, 16, 64, 256});
  CHECK(ends_of(true, 20'000) == std::vector<std::size_t>{4, 16, 64, 256});
  CHECK(ends_of(true, 1'000) == std::vector<std::size_t>{64, 256});
  CHECK(ends_of(true, 10).empty());
}

TEST_CASE("busy workers get a quarter of a chunk at the earliest, and only if that lasts longer than 1 ms") {
  CHECK(ends_of(false, 10'000'000) == std::vector<std::size_t>{64, 256});
  CHECK(ends_of(false, 15'625) == std::vector<std::size_t>{256});   // 64 samples are 1 ms exactly
  CHECK(ends_of(false, 1'000).empty());
}

TEST_CASE("the workers and the time are queried only when the chunk may end") {
  mr::detail::chunk_clock clock(0);
  std::size_t calls = 0, time_checks = 0;
  for (std::size_t n = 1; n <= 256; ++n)
    CHECK_FALSE(clock.ends_chunk([&] { return ++calls, false; }, [&] { return ++time_checks, std::uint64_t{0}; }));
  CHECK(calls == 5);
  CHECK(time_checks == 2);   // after 64 and 256 samples
}
