// Views and keys that are used after their batch: AddressSanitizer reports them.
#include <millrace/millrace.hpp>

#include "quiet_sessions.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace mr = millrace;

#if defined(__has_feature)
#define MILLRACE_TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define MILLRACE_TEST_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || MILLRACE_TEST_HAS_FEATURE(address_sanitizer)

namespace {

struct row {
  std::int32_t n;
};

auto flow() {
  return mr::from(numbers(64)) | mr::map([](int n) { return row{n}; }) | mr::batch<&row::n>({.size = 8}) |
         mr::prefetch({.batches = 2});
}

/// Returns whether a child that runs `act` is ended by AddressSanitizer.
template <class Act>
bool is_reported(const Act& act) {
  const pid_t child = fork();
  if (child == 0) {
    static_cast<void>(std::freopen("/dev/null", "w", stderr));
    act();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

TEST_CASE("AddressSanitizer reports a view that is used after its batch, but not the later batches") {
  for (const int threads : {0, 1}) {
    mr::session run{flow(), quiet(threads)};
    auto b = run.next();
    const auto view = b.get<&row::n>();
    CHECK(view[7] == 7);
    CHECK_FALSE(is_reported([&] { static_cast<void>(*const_cast<const volatile std::int32_t*>(view.data)); }));
    auto second = run.next();
    run.next().release();   // all following batches use the third slot
    while (run.next()) {
    }
    CHECK(view[7] == 7);   // the lease owns its slot
    b.release();
    CHECK(is_reported([&] { static_cast<void>(*const_cast<const volatile std::int32_t*>(view.data)); }));
    CHECK(is_reported([&] { static_cast<void>(*const_cast<const volatile std::int32_t*>(view.data + 7)); }));
    CHECK(second.get<&row::n>()[0] == 8);
  }
}

TEST_CASE("slots are usable again after their session, and a lease outlives it") {
  for (int round = 0; round < 3; ++round) {
    std::optional<decltype(mr::session{flow()})::batch> lease;
    {
      mr::session run{flow(), quiet(1)};
      lease = run.next();
      for (auto& b : run) CHECK(b.get<&row::n>()[0] % 8 == 0);
    }
    CHECK(lease->get<&row::n>()[3] == 3);
  }
}

#endif
