#include <millrace/adapt/remote/transfer/part_memory.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace mr = millrace;
using memory_need = mr::detail::part_memory::need;

TEST_CASE("optional blocks keep within the bound, required ones do not wait") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  mr::detail::part_memory memory(4 * mib);
  std::vector<mr::detail::part_memory::block> blocks;
  for (int i = 0; i < 4; ++i) {
    auto block = memory.take(mib, memory_need::optional);
    REQUIRE(block);
    CHECK(block->bytes().size() == mib);
    blocks.push_back(std::move(*block));
  }
  CHECK_FALSE(memory.take(1, memory_need::optional));
  auto more = memory.take(mib, memory_need::required);
  REQUIRE(more);
  CHECK(memory.now().held_bytes == 5 * mib);
  more.reset();
  blocks.erase(blocks.begin());
  auto again = memory.take(mib - 5, memory_need::optional);
  REQUIRE(again);
  CHECK(again->bytes().size() == mib - 5);
  blocks.clear();
  again.reset();
  CHECK(memory.now().held_bytes == 0);
  CHECK(memory.now().max_bytes == 5 * mib);
}

TEST_CASE("blocks may outlive their memory pool") {
  auto memory = std::make_unique<mr::detail::part_memory>(1 << 20);
  auto block = memory->take(10, memory_need::required);
  memory.reset();
  block->bytes()[9] = std::byte{1};
}
