// The default number of prefetched batches: few large ones, more small ones, and never more memory than the budget.
#include <millrace/run/memory_budget.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;

TEST_CASE("small batches have more slots by default, of 1 MiB at most") {
  constexpr std::size_t kib = 1'024, mib = 1'024 * kib;
  const auto prefetched = [](std::size_t bytes) { return mr::detail::memory_budget::default_prefetch(bytes); };
  CHECK(prefetched(0) == 16);
  CHECK(prefetched(2 * kib) == 16);
  CHECK(prefetched(64 * kib) == 16);
  CHECK(prefetched(65 * kib) == 15);
  CHECK(prefetched(128 * kib) == 8);
  CHECK(prefetched(256 * kib) == 4);
  CHECK(prefetched(512 * kib) == 4);
  CHECK(prefetched(16 * mib) == 4);
  CHECK(prefetched(20 * mib) == 3);
  CHECK(prefetched(38 * mib) == 2);   // 256 images of 224 x 224
  CHECK(prefetched(1'000 * mib) == 2);
}

TEST_CASE("a window that is filled at the beginning counts as a complete one if the budget has room") {
  mr::detail::memory_budget m{.budget_bytes = 2'000'000, .window = 1'000, .sample_bytes = 1'000};
  CHECK(m.window_bytes() == 500'000);
  m.withholds = true;
  CHECK(m.window_bytes() == 1'000'000);
  CHECK(m.describe().find("shuffle window 1000 x ") != std::string::npos);
  m.budget_bytes = 900'000;   // the window is then released before it is complete
  CHECK(m.window_bytes() == 500'000);
  CHECK(m.describe().find("shuffle window 1000 / 2 x ") != std::string::npos);
}
