// Memory for slots: its alignment, and the request for huge pages if the system has them.
#include <millrace/device/slot_memory.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace mr = millrace;

namespace {

struct freed {
  void operator()(void* memory) const noexcept { mr::detail::free_slot(memory); }
};
std::unique_ptr<void, freed> slot_of(std::size_t bytes) {
  return std::unique_ptr<void, freed>(mr::detail::allocate_slot(bytes));
}
std::uintptr_t begin_of(const std::unique_ptr<void, freed>& slot) {
  return reinterpret_cast<std::uintptr_t>(slot.get());
}

/// The kernel's flags of the memory at `address`: two letters for each flag.
std::string flags_at(std::uintptr_t address) {
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool here = false;
  while (std::getline(smaps, line)) {
    std::uintptr_t from = 0, to = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> from >> dash >> to && dash == '-') here = from <= address && address < to;
    if (here && line.starts_with("VmFlags:")) return line;
  }
  return {};
}

}  // namespace

TEST_CASE("slots of every size begin at a page, and can be written to their end") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, mr::detail::huge_page_bytes - 1,
                                  mr::detail::huge_page_bytes, 3 * mr::detail::huge_page_bytes + 4321}) {
    const auto slot = slot_of(bytes);
    CHECK(begin_of(slot) % mr::detail::slot_alignment_bytes == 0);
    if (bytes >= mr::detail::huge_page_bytes) CHECK(begin_of(slot) % mr::detail::huge_page_bytes == 0);
    std::memset(slot.get(), 7, bytes);
  }
}

TEST_CASE("huge pages are requested if a slot consists of complete ones") {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) return;   // without huge pages
  const auto large = slot_of(3 * mr::detail::huge_page_bytes + 4321);
  const std::string flags = flags_at(begin_of(large));
  REQUIRE(!flags.empty());
  CHECK(flags.find(" hg") != std::string::npos);
}
