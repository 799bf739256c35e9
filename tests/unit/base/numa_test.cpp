// NUMA nodes that sysfs reports, in folders that the tests create, and threads that are bound to cores.
#include "../../fake_sysfs.hpp"

#include <millrace/base/numa.hpp>

#include <doctest/doctest.h>

#include <thread>

namespace mr = millrace;

using cores = std::vector<unsigned>;

TEST_CASE("numbers are read from the kernel's lists") {
  const auto numbers = mr::detail::numbers_of_list;
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
  const cores all = mr::detail::allowed_cores(mr::detail::numbers_of_list("0-4095"));
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
