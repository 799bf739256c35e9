#include <millrace/base/aligned_allocator.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/base/numa.hpp>

#include "../../fake_sysfs.hpp"

#include <doctest/doctest.h>

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace mr = millrace;

TEST_CASE("a quota is read from the text of cpu.max") {
  CHECK(mr::detail::cores_of_cpu_max("200000 100000") == doctest::Approx(2));
  CHECK(mr::detail::cores_of_cpu_max("150000 100000\n") == doctest::Approx(1.5));
  CHECK(mr::detail::cores_of_cpu_max("max 100000") == 0);
  CHECK(mr::detail::cores_of_cpu_max("-1 100000") == 0);   // cgroup v1 without a quota
  CHECK(mr::detail::cores_of_cpu_max("") == 0);
}

TEST_CASE("the own cgroup is read from the lines of /proc/self/cgroup, of version 2 and of version 1") {
  const auto path_in = mr::detail::cgroup_path_in;
  CHECK(path_in("0::/user.slice/x\n", "") == "/user.slice/x");
  CHECK(path_in("0::/\n", "") == "");
  CHECK(path_in("4:cpu,cpuacct:/docker/7a:b\n", "cpu") == "/docker/7a:b");
  CHECK(path_in("4:cpuacct:/x\n", "cpu") == "");
  CHECK(path_in("1:cpu:/x\n", "") == "");
  CHECK(path_in("9:name=systemd:/x\n", "") == "");
  CHECK(path_in("nonsense", "") == "");
}

#if defined(__linux__)
TEST_CASE("the affinity mask bounds the cores") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(mr::usable_cores() == 1);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(mr::usable_cores() >= 1);
  CHECK(mr::usable_cores() <= static_cast<unsigned>(CPU_COUNT(&before)));
}
#endif

TEST_CASE("the memory is more than nothing and at most that of the machine") {
  CHECK(mr::detail::usable_memory_bytes() > (std::size_t{16} << 20));
}

TEST_CASE("processes of one machine divide its cores and its memory") {
  const auto cores = [](mr::detail::machine_view v, std::size_t processes) {
    return mr::detail::divided(v, processes).cores;
  };
  const mr::detail::machine_view all{.machine_cores = 64, .own_cores = 64, .parent_cores = 64, .memory_bytes = 800};
  CHECK(cores(all, 1) == 64);
  CHECK(cores(all, 8) == 8);
  CHECK(cores(all, 7) == 9);
  CHECK(cores(all, 100) == 1);
  CHECK(mr::detail::divided(all, 8).memory_bytes == 100);
  // The launcher has bound each process to its own cores.
  auto bound = all;
  bound.own_cores = 8;
  CHECK(cores(bound, 8) == 8);
  bound.parent_cores = 8;   // a script between the launcher and the process
  CHECK(cores(bound, 8) == 8);
  CHECK(cores(bound, 16) == 1);   // 16 of 8 cores each exceed this machine: the cores are shared
  bound.parent_starts_all = true;   // torchrun in a job of 8 cores
  CHECK(cores(bound, 4) == 2);
  bound.parent_cores = 64;   // torchrun binds them
  CHECK(cores(bound, 4) == 8);
  bound.parent_cores = 0;
  bound.parent_starts_all = false;
  CHECK(cores(bound, 4) == 8);
  // The quota of a container is shared by all processes, unless each has its own.
  auto container = all;
  container.quota_cores = 16;
  CHECK(cores(container, 4) == 4);
  CHECK(cores(container, 1) == 16);
  container.quota_is_shared = false;
  CHECK(cores(container, 4) == 16);
  container.quota_cores = 2.5;
  CHECK(cores(container, 1) == 3);
  CHECK(cores(container, 4) == 2);
  auto limited = all;
  limited.memory_is_shared = false;
  CHECK(mr::detail::divided(limited, 8).memory_bytes == 800);
}

TEST_CASE("a single process has all usable resources") {
  CHECK(mr::detail::share_of_machine(1).cores == mr::usable_cores());
  CHECK(mr::detail::share_of_machine(0).memory_bytes == mr::detail::usable_memory_bytes());
  const auto view = mr::detail::machine_view::now(false);
  CHECK(view.own_cores >= 1);
  CHECK(view.machine_cores >= view.own_cores);
  CHECK(mr::detail::share_of_machine(1'000'000).cores == 1);
}

// NUMA nodes that sysfs reports, in folders that the tests create, and threads that are bound to cores.

using cores = std::vector<unsigned>;

TEST_CASE("numbers are read from the kernel's lists") {
  const auto numbers = mr::detail::numbers_in_sysfs_list;
  CHECK(numbers("0") == cores{0});
  CHECK(numbers("0-3,8\n") == cores{0, 1, 2, 3, 8});
  CHECK(numbers("0,2-3,64-65\n") == cores{0, 2, 3, 64, 65});
  CHECK(numbers("8,0-1") == cores{0, 1, 8});
  CHECK(numbers("\n").empty());
  CHECK(numbers("").empty());
  CHECK(numbers("-1\n").empty());   // the content of numa_node if the node is unknown
  CHECK(numbers("0-").empty());
  CHECK(numbers("0;1").empty());
  CHECK(numbers("all").empty());
  CHECK(numbers("4000-99999999999999999999").size() == 96);   // 4,000 to 4,095
}

TEST_CASE("a device's node is found by its address, in either case, if there are several nodes") {
  fake_sysfs sys;
  sys.add_node(0, "0-3");
  sys.add_node(1, "4-7");
  sys.add_device("0000:a1:00.0", "1");
  sys.add_device("0000:a2:00.0", "-1");
  sys.add_device("0000:a3:00.0", "2");   // a node without memory
  const auto node_of = [&](const char* address) {
    return mr::detail::numa_node_of_pci_device(address, sys.root());
  };
  CHECK(node_of("0000:A1:00.0") == 1U);
  CHECK(node_of("0000:a1:00.0") == 1U);
  CHECK(!node_of("0000:a2:00.0"));
  CHECK(!node_of("0000:a3:00.0"));
  CHECK(!node_of("0000:a4:00.0"));
  CHECK(!node_of(""));
  CHECK(mr::detail::cores_of_numa_node(1, sys.root()) == cores{4, 5, 6, 7});
  CHECK(mr::detail::cores_of_numa_node(2, sys.root()).empty());
}

TEST_CASE("on a machine with one node, or without sysfs, no device has a node") {
  fake_sysfs sys;
  sys.add_node(0, "0-3");
  sys.add_device("0000:01:00.0", "0");
  CHECK(!mr::detail::numa_node_of_pci_device("0000:01:00.0", sys.root()));
  CHECK(!mr::detail::numa_node_of_pci_device("0000:01:00.0", sys.root() + "/nowhere"));
}

TEST_CASE("a long list of cores is read completely") {
  fake_sysfs sys;
  std::string list = "0";
  for (int core = 2; core < 512; core += 2) list += "," + std::to_string(core);   // as with hardware threads
  sys.add_node(0, list);
  CHECK(mr::detail::cores_of_numa_node(0, sys.root()).size() == 256);
}

#if defined(__linux__)
TEST_CASE("a thread is bound to cores until the end of the scope, the threads that it starts permanently") {
  const cores all = mr::detail::allowed_cores(mr::detail::numbers_in_sysfs_list("0-4095"));
  REQUIRE(!all.empty());
  const cores last{all.back()};
  const auto cores_now = [&] { return mr::detail::allowed_cores(all); };
  cores inside, of_thread;
  {
    const mr::detail::core_scope scope(last);
    inside = cores_now();
    std::thread([&] { of_thread = cores_now(); }).join();
  }
  CHECK(inside == last);
  CHECK(of_thread == last);
  CHECK(cores_now() == all);
  {
    const mr::detail::core_scope none(cores{});
    CHECK(cores_now() == all);
  }
  {
    const mr::detail::core_scope no_such_core(cores{1'000'000});
    CHECK(cores_now() == all);
  }
}
#endif

TEST_CASE("a number of processes is digits and nothing else") {
  CHECK(mr::detail::launcher_variable_number("0") == 0);
  CHECK(mr::detail::launcher_variable_number("007") == 7);
  CHECK(mr::detail::launcher_variable_number("1048575") == 1'048'575);
  for (const char* text : {"1048576", "99999999999999999999", "", " 1", "1 ", "-1", "+1", "1.0", "0x1", "a"})
    CHECK_MESSAGE(mr::detail::launcher_variable_number(text) == -1, text);
  CHECK(mr::detail::launcher_variable_number(nullptr) == -1);
}

TEST_CASE("the local rank is the innermost launcher's") {
  for (const mr::detail::launcher& l : mr::detail::launchers) unsetenv(l.local_rank);
  CHECK(mr::local_rank() == 0);
  int expected = 0;
  for (std::size_t i = std::size(mr::detail::launchers); i-- > 0;) {
    setenv(mr::detail::launchers[i].local_rank, std::to_string(++expected).c_str(), 1);
    CHECK(mr::local_rank() == expected);
  }
  setenv("LOCAL_RANK", "many", 1);
  CHECK(mr::local_rank() == expected - 1);
  for (const mr::detail::launcher& l : mr::detail::launchers) unsetenv(l.local_rank);
}

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
