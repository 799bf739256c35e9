#include <millrace/base/aligned_allocator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace mr = millrace;

namespace {

struct alignas(64) line {
  std::uint8_t bytes[192] = {};
};
struct owner {
  int number = 7;
  line own;
};

bool aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % alignof(line) == 0; }

}  // namespace

TEST_CASE("vectors and shared objects of over-aligned types are aligned, whatever was allocated before") {
  std::vector<std::unique_ptr<std::byte[]>> others;
  std::vector<mr::detail::aligned_vector<line>> vectors;
  std::vector<std::shared_ptr<owner>> objects;
  for (std::size_t i = 0; i < 64; ++i) {
    others.push_back(std::make_unique<std::byte[]>(24 + i * 16));
    vectors.emplace_back(i % 3 + 1);
    vectors.back().resize(5);
    CHECK(aligned(vectors.back().data()));
    objects.push_back(mr::detail::make_aligned_shared<owner>());
    CHECK(aligned(&objects.back()->own));
  }
  CHECK(objects.back()->number == 7);
}

TEST_CASE("an aligned allocator refuses a count whose bytes overflow") {
  mr::detail::aligned_allocator<line> lines;
  CHECK_THROWS_AS((void)lines.allocate(std::numeric_limits<std::size_t>::max() / 64), std::bad_array_new_length);
}
