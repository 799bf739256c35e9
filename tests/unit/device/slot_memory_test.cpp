// Memory for slots: its alignment, and the request for huge pages if the system has them.
#include <millrace/device/node_memory.hpp>
#include <millrace/device/slot_memory.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

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

// Memory that prefers a NUMA node: the policy that the kernel receives for its pages before they are touched.

namespace {

#ifdef SYS_get_mempolicy
struct policy {
  int mode = -1;
  unsigned long nodes = 0;
};

/// The policy of the page at `memory`; mode -1: this kernel, or the sandbox, has no policies.
policy policy_of(const void* memory) {
  policy p;
  unsigned long nodes[16] = {};
  constexpr unsigned long of_address = 2;   // MPOL_F_ADDR
  if (syscall(SYS_get_mempolicy, &p.mode, nodes, 8 * sizeof nodes, memory, of_address) != 0) return {};
  p.nodes = nodes[0];
  return p;
}
#endif

}  // namespace

TEST_CASE("memory of every size near a node begins at a page, is zeros, and can be written to its end") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{5000}, mr::detail::huge_page_bytes - 1,
                                  mr::detail::huge_page_bytes, 3 * mr::detail::huge_page_bytes + 4321}) {
    const mr::detail::node_memory memory(bytes, 0);
    const std::size_t alignment =
        bytes >= mr::detail::huge_page_bytes ? mr::detail::huge_page_bytes : mr::detail::slot_alignment_bytes;
    REQUIRE(memory.get());
    CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % alignment == 0);
    CHECK(static_cast<const char*>(memory.get())[bytes - 1] == 0);
    std::memset(memory.get(), 7, bytes);
  }
}

#ifdef SYS_get_mempolicy
TEST_CASE("all pages of the memory prefer the node") {
  const std::size_t bytes = 2 * mr::detail::huge_page_bytes + 5'000;
  const mr::detail::node_memory memory(bytes, 0);
  const char* const first = static_cast<const char*>(memory.get());
  if (policy_of(first).mode < 0) {
    MESSAGE("this kernel has no memory policies");
    return;
  }
  CHECK(memory.error() == 0);
  constexpr int preferred = 1;
  for (const char* at : {first, first + bytes / 2, first + bytes - 1}) {
    CHECK(policy_of(at).mode == preferred);
    CHECK(policy_of(at).nodes == 1);   // a mask: node 0
  }
}
#endif

TEST_CASE("a missing node is reported, and the memory is usable") {
  for (const unsigned node : {1'000U, 1'000'000U}) {
    const mr::detail::node_memory memory(10'000, node);
    CHECK(memory.error() != 0);
    std::memset(memory.get(), 7, 10'000);
  }
}

TEST_CASE("memory near a node is freed, with the space for its alignment") {
  const auto mapped_kb = [] {
    std::ifstream status("/proc/self/statm");
    std::size_t pages = 0;
    status >> pages;
    return pages * 4;
  };
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const std::size_t before = mapped_kb();
  {
    const mr::detail::node_memory memory(bytes, 0);
    CHECK(mapped_kb() >= before + bytes / 1'024);
    CHECK(mapped_kb() < before + bytes / 1'024 + 4'096);
  }
  CHECK(mapped_kb() < before + 4'096);
}

TEST_CASE("touching memory allocates all its pages, on one thread or on several") {
  for (const std::size_t bytes : {std::size_t{10'000}, (std::size_t{40} << 20) + 12'345}) {
    mr::detail::node_memory memory(bytes, {});
    CHECK(memory.error() == 0);
    CHECK_FALSE(memory.touch({}));   // bound to no core
    std::vector<unsigned char> resident(mr::detail::node_memory::mapped_bytes(bytes) / 4'096);
    REQUIRE(mincore(memory.get(), bytes, resident.data()) == 0);
    CHECK(std::all_of(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1U) != 0; }));
    CHECK(static_cast<const char*>(memory.get())[bytes - 1] == 0);
  }
}

TEST_CASE("a forked process does not have the memory, and does not unmap the memory that is at its address") {
  auto memory = std::make_unique<mr::detail::node_memory>(10'000, 0);
  memory->touch({});
  char* const at = static_cast<char*>(memory->get());
  const pid_t child = fork();
  if (child == 0) {
    // MAP_FIXED_NOREPLACE fails if the range is in use.
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | 0x100000;
    void* const again = mmap(at, 8'192, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (again != at) _exit(1);
    at[0] = 7;
    memory.reset();
    int ends[2];   // the kernel refuses to write from memory that is not mapped
    _exit(pipe(ends) == 0 && write(ends[1], at, 1) == 1 ? 0 : 2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
