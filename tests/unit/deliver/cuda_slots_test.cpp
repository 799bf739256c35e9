// Pinned host slots: sessions of one device reuse them, within limits; and pageable slots.
#include "../../captured_stderr.hpp"
#include "../../cuda/fake/fake_cuda.hpp"
#include "../../cuda/fake/helpers.hpp"
#include "../../eventually.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace mr = millrace;
using fake_cuda_test::ok;

namespace {

constexpr std::size_t rows = 4, width = 3'000;

struct example {
  std::array<std::uint8_t, width> pixels;
};

auto flow(mr::to_device_options where, std::size_t batch_rows = rows) {
  return mr::from(numbers(80)) | mr::map([](int n) {
           example e{};
           e.pixels.fill(static_cast<std::uint8_t>(n));
           return e;
         }) |
         mr::batch<&example::pixels>({.size = batch_rows}) | mr::prefetch({.batches = 2}) |
         mr::to_device(std::move(where));
}

/// Counts batches with wrong pixels. The kernel reads the batch when it runs in the stream.
struct checked_steps {
  std::atomic<int> wrong{0}, done{0};

  struct step {
    checked_steps* all;
    const std::uint8_t* pixels;
    std::size_t first;
  };
  void launch(cudaStream_t stream, const std::uint8_t* pixels, std::uint64_t batch) {
    ok(cudaLaunchHostFunc(
        stream,
        [](void* data) {
          const std::unique_ptr<step> s(static_cast<step*>(data));
          for (std::size_t i = 0; i < rows * width; ++i)
            if (s->pixels[i] != s->first + i / width) {
              ++s->all->wrong;
              break;
            }
          ++s->all->done;
        },
        new step{this, pixels, static_cast<std::size_t>(batch) * rows}));
  }
};

/// Runs a session and returns its description.
std::string run_on(const mr::device& device, int threads = 2) {
  checked_steps steps;
  fake_cuda_test::a_stream stream;
  mr::session run{flow({.device = device, .stream = stream.handle}), quiet(threads)};
  int batches = 0;
  for (auto& b : run) {
    steps.launch(stream, b.template get<&example::pixels>().data, b.step());
    ++batches;
  }
  ok(cudaStreamSynchronize(stream));
  CHECK(batches == 20);
  CHECK(steps.wrong == 0);
  return run.description();
}

std::uint64_t allocations() { return fake_cuda::calls("cudaHostRegister") + fake_cuda::calls("cudaHostAlloc"); }
std::uint64_t frees() { return fake_cuda::calls("cudaHostUnregister") + fake_cuda::calls("cudaFreeHost"); }

void expect_clean() {
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  CHECK(fake_cuda::violations() == std::vector<std::string>{});
  CHECK(cudaGetLastError() == cudaSuccess);
}

}  // namespace

TEST_CASE("sessions of one device reuse its host slots, which are freed with the device") {
  for (const bool registers : {true, false}) {
    fake_cuda::reset({.host_page_tables = !registers});
    {
      const mr::device device = mr::cuda_device(0);
      run_on(device);
      const std::uint64_t of_one = allocations();
      CHECK(of_one >= 2);
      CHECK(frees() == 0);
      for (int epoch = 1; epoch < 4; ++epoch) run_on(device, epoch - 1);
      CHECK(allocations() == of_one);
      CHECK(frees() == 0);
      CHECK(fake_cuda::live().host_allocations == of_one);
      CHECK(fake_cuda::calls("cudaGetDeviceProperties") == 1);
    }
    CHECK(frees() == allocations());
    expect_clean();
  }
}

TEST_CASE("a batch that outlives its device and session keeps its slots") {
  fake_cuda::reset();
  mr::batch_of<&example::pixels> last;
  {
    const mr::device device = mr::cuda_device(0);
    mr::session run{flow({.device = device}), quiet(2)};
    last = run.next();
  }
  CHECK(fake_cuda::live().host_allocations >= 2);
  last.release();
  expect_clean();
}

TEST_CASE("two sessions at the same time have different slots") {
  fake_cuda::reset();
  {
    const mr::device device = mr::cuda_device(0);
    run_on(device);
    const std::uint64_t of_one = allocations();
    mr::session train{flow({.device = device}), quiet(2)};
    CHECK(allocations() == of_one);
    train.next().release();
    run_on(device);
    CHECK(allocations() == 2 * of_one);
  }
  expect_clean();
}

TEST_CASE("free slots of another size are freed if CUDA has no pinned memory left") {
  fake_cuda::reset({.pinned_bytes = 60'000});
  {
    const mr::device device = mr::cuda_device(0);
    CHECK(run_on(device).find("pageable") == std::string::npos);
    const std::size_t of_one = fake_cuda::live().host_allocations;
    mr::session other{flow({.device = device}, 8), quiet(2)};   // does not fit in addition
    CHECK(other.description().find("pageable") == std::string::npos);
    CHECK(fake_cuda::calls("cudaHostUnregister") == of_one);
    CHECK(fake_cuda::live().host_allocations == of_one);
  }
  expect_clean();
}

TEST_CASE("free slots are limited: the first ones are freed, and a slot above the limit is not kept") {
  fake_cuda::reset();
  constexpr std::size_t page = 4'096;
  const auto slot_of = [](std::size_t pages) {
    return std::make_unique<mr::detail::pinned_slot>(pages * page - 1, mr::detail::pinned_place{});
  };
  const auto live = [] { return fake_cuda::live().host_allocations; };
  {
    mr::detail::spare_slots spare(4 * page);
    CHECK_FALSE(spare.reuse(page));
    spare.keep(slot_of(5));
    CHECK(live() == 0);
    for (const std::size_t pages : {1, 2, 1}) spare.keep(slot_of(pages));
    CHECK(live() == 3);
    CHECK_FALSE(spare.reuse(3 * page));
    const auto two = spare.reuse(page + 1);
    REQUIRE(two);
    CHECK(two->bytes() == 2 * page);
    CHECK_FALSE(spare.reuse(2 * page));
    spare.keep(slot_of(3));   // one of the two slots with one page is freed
    CHECK(live() == 3);
    CHECK(spare.reuse(page));
    CHECK_FALSE(spare.reuse(page));
    CHECK(spare.clear());
    CHECK(live() == 1);
    CHECK_FALSE(spare.clear());
    spare.keep(slot_of(4));
    CHECK(live() == 2);
  }
  CHECK(live() == 0);
  expect_clean();
}

TEST_CASE("all pages of a slot are allocated before it is registered") {
  fake_cuda::reset();
  {
    const mr::detail::pinned_slot slot(100'000, mr::detail::pinned_place{});
    REQUIRE(fake_cuda::calls("cudaHostRegister") == 1);
    std::vector<unsigned char> resident(slot.bytes() / 4'096);
    REQUIRE(mincore(slot.get(), slot.bytes(), resident.data()) == 0);
    CHECK(std::all_of(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1U) != 0; }));
  }
  expect_clean();
}

TEST_CASE("pinned slots are not shared with a forked process") {
  fake_cuda::reset();
  const mr::device device = mr::cuda_device(0);
  run_on(device);
  const auto all = fake_cuda::all_host_memory();
  REQUIRE(all.size() >= 2);
  for (const auto& slot : all) REQUIRE(fake_cuda::host_can_read(slot.address));
  const pid_t child = fork();
  if (child == 0) {
    int shared = 0;
    for (const auto& slot : all) shared += fake_cuda::host_can_read(slot.address);
    _exit(shared);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("slots of a session whose copy has no event are neither freed nor reused during the copy") {
  for (std::uint64_t nth = 1; nth < 20; ++nth) {
    CAPTURE(nth);
    fake_cuda::reset({.seed = nth, .when = fake_cuda::order::late});
    {
      const mr::device device = mr::cuda_device(0);
      fake_cuda::fail("cudaEventRecord", nth, cudaErrorIllegalState);
      try {
        mr::session run{flow({.device = device}), quiet(0)};
        while (auto b = run.next()) b.release();
      } catch (const mr::io_error&) {
      }
      run_on(device, 0);
    }
    expect_clean();
  }
}

TEST_CASE("pageable slots: a notice and the name say so, and copies that wait for steps delay next() only") {
  using fake_cuda::order;
  for (const order when : {order::late, order::early, order::shuffled})
    for (const int background : {0, 2})
      for (const int threads : {0, 2}) {
        CAPTURE(background);
        CAPTURE(threads);
        fake_cuda::reset({.when = when, .background_threads = background, .pinned_bytes = 0, .pageable_waits = true});
        {
          const mr::device device = mr::cuda_device(0);
          std::string description;
          const std::string text = captured_stderr([&] { description = run_on(device, threads); });
          CHECK(description.find("with pageable host slots") != std::string::npos);
          CHECK(text.find("are slower and may wait for training steps") != std::string::npos);
          CHECK(text.find("could not be allocated") == text.rfind("could not be allocated"));   // one notice
        }
        expect_clean();
      }
}

TEST_CASE("a session with pageable slots ends while a copy waits for a step") {
  fake_cuda::reset({.background_threads = 2, .pinned_bytes = 0, .pageable_waits = true});
  std::atomic<bool> open{false};
  {
    fake_cuda_test::a_stream stream;
    std::optional<decltype(mr::session(flow({.device = mr::host_device()})))> run;
    captured_stderr([&] {
      run.emplace(flow({.device = mr::cuda_device(0), .stream = stream.handle, .slots = 2}), quiet(2));
    });
    ok(cudaLaunchHostFunc(
        stream, [](void* data) { eventually([&] { return static_cast<std::atomic<bool>*>(data)->load(); }); }, &open));
    for (int i = 0; i < 2; ++i) run->next().release();
    // The copy of batch 2 waits for the step inside cudaMemcpyAsync(), and the batch is not delivered before.
    CHECK(eventually([&] { return fake_cuda::calls("cudaMemcpyAsync") == 3; }));
    std::thread opens([&] {
      std::this_thread::yield();
      open = true;
    });
    run.reset();
    CHECK(open);
    opens.join();
    ok(cudaStreamSynchronize(stream));
  }
  expect_clean();
}
