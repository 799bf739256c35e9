// The system refuses memory while a pinned slot is created: no page remains registered, no memory remains allocated.
//
// A separate program, because its operator new replaces that of the entire process.
#include "../../cuda/fake/fake_cuda.hpp"

#include <millrace/device/cuda.hpp>

#include <doctest/doctest.h>

#if defined(__has_feature)
#define MILLRACE_TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define MILLRACE_TEST_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || MILLRACE_TEST_HAS_FEATURE(address_sanitizer) || \
    MILLRACE_TEST_HAS_FEATURE(thread_sanitizer)

TEST_CASE("memory that is refused to a pinned slot (not tested: operator new is a sanitizer's)" * doctest::skip()) {}

#else

#include <cstdlib>
#include <new>
#include <optional>

namespace {

/// Number of allocations until one is refused; negative: none.
thread_local long countdown = -1;

void* allocated(std::size_t bytes) {
  if (countdown >= 0 && !fake_cuda::is_inside() && countdown-- == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocated(bytes); }
void* operator new[](std::size_t bytes) { return allocated(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("each allocation, from first to last, may be refused to a pinned slot") {
  // Neither the node nor the core exists, so that the slot has a long reason for its place.
  for (const bool registers : {true, false}) {
    const millrace::detail::pinned_place place{.node = 900, .near_cores = {4'000}, .registers = registers};
    fake_cuda::reset();
    int refused = 0;
    for (bool complete = false; !complete;) {
      CAPTURE(registers);
      CAPTURE(refused);
      std::optional<millrace::detail::pinned_slot> slot;
      countdown = refused;
      try {
        slot.emplace(10'000, place);
      } catch (const std::bad_alloc&) {
      }
      complete = countdown >= 0;
      countdown = -1;
      CHECK(slot.has_value() == complete);
      CHECK(fake_cuda::live().host_allocations == (complete ? 1 : 0));
      if (!complete) ++refused;
      else CHECK(!slot->far_reason().empty());
    }
    CHECK(refused > 0);
  }
}

#endif
