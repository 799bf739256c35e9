// Location of the pinned slots of a session on a machine with several NUMA nodes, and cores that its threads are bound
// to. The machine is simulated. Every machine has node 0, so that the kernel accepts it; it refuses a missing node.
#include "../../cuda/fake/fake_cuda.hpp"
#include "../../fake_sysfs.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/base/numa.hpp>
#include <millrace/device/best_device.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <oneapi/tbb/parallel_for.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace mr = millrace;

namespace {

constexpr std::size_t rows = 4, width = 3'000;

struct example {
  std::array<std::uint8_t, width> pixels;
};

example example_of(int n) {
  example e{};
  e.pixels.fill(static_cast<std::uint8_t>(n % 251));
  return e;
}

std::string address_of_first_device() {
  char address[32] = {};
  REQUIRE(cudaDeviceGetPCIBusId(address, sizeof address, 0) == cudaSuccess);
  std::string lower = address;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

mr::device device_of(const fake_sysfs& sys) {
  return mr::device(std::make_shared<mr::detail::cuda_backend>(0, sys.root()));
}

struct result {
  std::string description;
  int wrong = 0, batches = 0;
};

result run_on(const mr::device& where, mr::session_options options = quiet(2)) {
  mr::session run{mr::from(numbers(80)) | mr::map(example_of) | mr::batch<&example::pixels>({.size = rows}) |
                      mr::to_device({.device = where}),
                  std::move(options)};
  result r{.description = run.description()};
  for (auto& b : run) {
    const auto copy = b.to_host(b.template get<&example::pixels>());
    for (std::size_t i = 0; i < rows; ++i)
      if (copy(i, width - 1) != (static_cast<std::size_t>(r.batches) * rows + i) % 251) ++r.wrong;
    ++r.batches;
  }
  return r;
}

void expect_complete(const result& r) {
  CHECK(r.batches == 20);
  CHECK(r.wrong == 0);
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  CHECK(fake_cuda::violations().empty());
  CHECK(cudaGetLastError() == cudaSuccess);
}

bool says(const result& r, const char* words) { return r.description.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("with several nodes the slots are pages near the GPU, pinned afterwards, and the start line says so") {
  fake_cuda::reset();
  fake_sysfs sys;
  sys.add_node(0, "0");
  sys.add_node(1, "1");
  sys.add_device(address_of_first_device(), "0");
  if (mr::detail::node_memory(1, 0).error() != 0) {
    MESSAGE("this kernel has no memory policies");
    return;
  }
  const result r = run_on(device_of(sys));
  CHECK(says(r, "cuda:0 (Fake GPU 0) with host slots on NUMA node 0, 2 workers"));
  CHECK(fake_cuda::calls("cudaHostAlloc") == 0);
  CHECK(fake_cuda::calls("cudaHostRegister") >= 2);
  CHECK(fake_cuda::calls("cudaHostRegister") == fake_cuda::calls("cudaHostUnregister"));
  expect_complete(r);
}

TEST_CASE("with one node, or with an unknown node of the GPU, the slots are registered, and no node is named") {
  for (const bool several : {false, true}) {
    fake_cuda::reset();
    fake_sysfs sys;
    sys.add_node(0, "0");
    if (several) sys.add_node(1, "1");
    sys.add_device(address_of_first_device(), several ? "-1" : "0");
    const result r = run_on(device_of(sys));
    CHECK(!says(r, "with host slots"));
    CHECK(fake_cuda::calls("cudaHostAlloc") == 0);
    CHECK(fake_cuda::calls("cudaHostRegister") >= 2);
    expect_complete(r);
  }
}

TEST_CASE("a runtime that does not report the GPU's address, too") {
  fake_cuda::reset();
  fake_sysfs sys;
  sys.add_node(0, "0");
  sys.add_node(1, "1");
  sys.add_device(address_of_first_device(), "0");
  fake_cuda::fail("cudaDeviceGetPCIBusId", 1, cudaErrorNotSupported);
  const result r = run_on(device_of(sys));
  CHECK(!says(r, "NUMA"));
  expect_complete(r);
}

#if defined(__linux__)
TEST_CASE("if the kernel refuses the node, as in containers, a thread on the near cores touches the pages") {
  const std::vector<unsigned> all = mr::detail::allowed_cores(mr::detail::numbers_in_sysfs_list("0-4095"));
  for (const unsigned near : {all.front(), all.back()}) {
    fake_cuda::reset();
    fake_sysfs sys;
    sys.add_node(0, "4000");
    sys.add_node(900, std::to_string(near));   // mbind refuses a node that does not exist
    sys.add_device(address_of_first_device(), "900");
    mr::detail::node_memory memory(10'000, 900);
    REQUIRE(memory.error() != 0);
    const result r = run_on(device_of(sys));
    CHECK(says(r, "cuda:0 (Fake GPU 0) with host slots on NUMA node 900, 2 workers"));
    CHECK(fake_cuda::calls("cudaHostAlloc") == 0);
    CHECK(fake_cuda::calls("cudaHostRegister") >= 2);
    CHECK(memory.touch({near}));
    CHECK(mr::detail::allowed_cores(all) == all);   // of the trainer
    expect_complete(r);
  }
}
#endif

TEST_CASE("if no near core is allowed either, the start line says so, and the slots are still pinned") {
  fake_cuda::reset();
  fake_sysfs sys;
  sys.add_node(0, "0");
  sys.add_node(900, "4000");
  sys.add_device(address_of_first_device(), "900");
  CHECK_FALSE(mr::detail::node_memory(10'000, 900).touch({4000}));
  const result r = run_on(device_of(sys));
  CHECK(says(r, "cuda:0 (Fake GPU 0) with host slots not bound to NUMA node 900 (mbind: "));
  CHECK(fake_cuda::calls("cudaHostAlloc") == 0);
  CHECK(fake_cuda::calls("cudaHostRegister") >= 2);
  expect_complete(r);
}

TEST_CASE("pages that cannot be pinned are reported too; if nothing can be pinned, the slots are pageable") {
  fake_sysfs sys;
  sys.add_node(0, "0");
  sys.add_node(1, "1");
  fake_cuda::reset();
  sys.add_device(address_of_first_device(), "0");
  if (mr::detail::node_memory(1, 0).error() != 0) {
    MESSAGE("this kernel has no memory policies");
    return;
  }
  for (const std::uint64_t nth : {1U, 2U}) {
    fake_cuda::reset();
    fake_cuda::fail("cudaHostRegister", nth, cudaErrorNotSupported);
    const result r = run_on(device_of(sys));
    CHECK(says(r, " in small pages (cudaHostRegister: cudaErrorNotSupported)"));
    CHECK(fake_cuda::calls("cudaHostRegister") == nth);   // after a refusal it is not requested again
    CHECK(fake_cuda::calls("cudaHostAlloc") >= 1);
    expect_complete(r);
  }
  fake_cuda::reset({.pinned_bytes = 20'000});
  const result r = run_on(device_of(sys));
  CHECK(says(r, "with pageable host slots"));
  expect_complete(r);
}

#if defined(__linux__)
TEST_CASE("where registering does not pin memory, as on GH200, CUDA allocates the slots on a near core") {
  const std::vector<unsigned> all = mr::detail::allowed_cores(mr::detail::numbers_in_sysfs_list("0-4095"));
  for (const unsigned near : {all.front(), all.back()}) {
    fake_cuda::reset({.host_page_tables = true});
    fake_sysfs sys;
    sys.add_node(0, "4000");
    sys.add_node(900, std::to_string(near));
    sys.add_device(address_of_first_device(), "900");
    const mr::device where = device_of(sys);
    {
      const auto own = where.backend()->for_one_session();
      void* const slot = own->allocate_host(10'000);
      cudaPointerAttributes attributes{};
      CHECK(cudaPointerGetAttributes(&attributes, slot) == cudaSuccess);
      CHECK(attributes.type == cudaMemoryTypeHost);
      REQUIRE(fake_cuda::all_host_memory().size() == 1);
      CHECK(fake_cuda::all_host_memory()[0].core == static_cast<int>(near));
      CHECK(own->name() == "cuda:0 (Fake GPU 0) with host slots on NUMA node 900");
      own->free_host(slot);
    }
    CHECK(run_on(where).wrong == 0);
    CHECK(fake_cuda::calls("cudaHostRegister") == 0);
    CHECK(mr::detail::allowed_cores(all) == all);   // of the trainer
  }
}

TEST_CASE("threads stay on the cores near the device on request, and leave them when the session is over") {
  const std::vector<unsigned> all = mr::detail::allowed_cores(mr::detail::numbers_in_sysfs_list("0-4095"));
  if (all.size() < 2) {
    MESSAGE("there is one core here");
    return;
  }
  fake_cuda::reset();
  fake_sysfs sys;
  sys.add_node(0, std::to_string(all.back()) + ",4000");   // including one that this process may not use
  sys.add_node(1, std::to_string(all.front()));
  sys.add_device(address_of_first_device(), "0");

  using cores = std::vector<unsigned>;
  for (const bool near : {true, false}) {
    std::mutex mutex;
    std::set<cores> of_workers, of_readers;
    const auto note = [&](std::set<cores>& where) {
      const std::lock_guard lock(mutex);
      where.insert(mr::detail::allowed_cores(all));
    };
    struct recording_source {
      using item = int;
      struct reader {
        std::function<void()> note;
        int next_item = 0;
        std::optional<int> next() {
          note();
          return next_item < 400 ? std::optional(next_item++) : std::nullopt;
        }
      };
      std::function<void()> note;
      std::size_t shards() const noexcept { return 1; }
      reader open(std::size_t, std::uint64_t) const { return {note}; }
    };
    const auto prepare = [&](int n) {
      note(of_workers);
      return example_of(n);
    };
    mr::session_options options = quiet(2);
    options.threads_near_device = near;
    mr::session run{mr::from(recording_source{[&] { note(of_readers); }}) | mr::map(prepare) |
                        mr::batch<&example::pixels>({.size = rows}) | mr::to_device({.device = device_of(sys)}),
                    options};
    int batches = 0;
    for (auto& b : run) batches += b.size() == rows;
    CHECK(batches == 100);
    const cores expected = near ? cores{all.back()} : all;
    CHECK(of_workers == std::set<cores>{expected});
    CHECK(of_readers == std::set<cores>{expected});
    CHECK((run.description().find(", on the 1 cores near the device;") != std::string::npos) == near);
    CHECK(mr::detail::allowed_cores(all) == all);   // of the trainer
  }
  // oneTBB's threads still exist, and belong to the user.
  std::atomic<int> elsewhere{0};
  tbb::parallel_for(0, 1'000, [&](int) { elsewhere += mr::detail::allowed_cores(all) != all; });
  CHECK(elsewhere == 0);
}

TEST_CASE("the automatic number of workers counts the cores near the device") {
  const std::vector<unsigned> all = mr::detail::allowed_cores(mr::detail::numbers_in_sysfs_list("0-4095"));
  fake_cuda::reset();
  fake_sysfs sys;
  sys.add_node(0, std::to_string(all.front()));
  sys.add_node(1, "4000");
  sys.add_device(address_of_first_device(), "0");
  mr::session_options options = quiet(0);
  options.threads.reset();
  options.threads_near_device = true;
  const result r = run_on(device_of(sys), options);
  CHECK(says(r, ", 1 workers, "));
  expect_complete(r);
}
#endif
