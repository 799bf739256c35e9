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

TEST_CASE("the memory is more than nothing and at most what the machine has") {
  CHECK(mr::detail::usable_memory_bytes() > (std::size_t{16} << 20));
}
