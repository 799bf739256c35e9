#include <millrace/base/machine.hpp>

#include <doctest/doctest.h>

#include <sched.h>

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
