// Pinned host slots: sessions of one device reuse them, within limits; and pageable slots.
#include "../../captured_stderr.hpp"
#include "../../cuda/fake/fake_cuda.hpp"
#include "../../cuda/fake/helpers.hpp"
#include "../../eventually.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/base/random.hpp>
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
std::string run_on(const mr::device& device, mr::session_options options = quiet(2)) {
  checked_steps steps;
  fake_cuda_test::a_stream stream;
  mr::session run{flow({.device = device, .stream = stream.handle}), std::move(options)};
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
      for (int epoch = 1; epoch < 4; ++epoch) run_on(device, quiet(epoch - 1));
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

TEST_CASE("free slots of another size are freed before new ones are allocated") {
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

TEST_CASE("all free slots are freed if CUDA refuses pinned memory") {
  fake_cuda::reset();
  {
    const mr::device device = mr::cuda_device(0);
    run_on(device);
    CHECK(fake_cuda::live().host_allocations >= 2);
    const std::shared_ptr<mr::device_backend> own = device.backend()->for_one_session();
    fake_cuda::fail("cudaHostRegister", 1, cudaErrorMemoryAllocation);
    fake_cuda::fail("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    void* const slot = own->allocate_host(100);   // frees one free slot first
    CHECK(own->warning().empty());
    CHECK(fake_cuda::live().host_allocations == 1);
    own->free_host(slot);
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
    mr::detail::spare_slot_memory spare(4 * page);
    CHECK_FALSE(spare.reuse(page));
    spare.keep(slot_of(5));
    CHECK(live() == 0);
    for (const std::size_t pages : {1, 2, 1}) spare.keep(slot_of(pages));
    CHECK(live() == 3);
    const auto two = spare.reuse(page + 1);
    REQUIRE(two);
    CHECK(two->bytes() == 2 * page);
    spare.keep(slot_of(3));   // one of the two slots with one page is freed
    CHECK(live() == 3);
    CHECK(spare.reuse(page));
    CHECK(live() == 2);
    CHECK(spare.clear());
    CHECK(live() == 1);
    CHECK_FALSE(spare.clear());
    spare.keep(slot_of(4));
    CHECK(live() == 2);
  }
  CHECK(live() == 0);
  expect_clean();
}

TEST_CASE("slots in use and free slots together never exceed the most that were in use at the same time") {
  fake_cuda::reset();
  constexpr std::size_t page = 4'096;
  const auto live_pages = [] {
    std::size_t sum = 0;
    for (const auto& slot : fake_cuda::all_host_memory()) sum += slot.bytes / page;
    return sum;
  };
  mr::rng draw({.seed = 5});
  {
    mr::detail::spare_slot_memory spare(1'000 * page);
    std::vector<std::unique_ptr<mr::detail::pinned_slot>> in_use;
    std::size_t used = 0, most = 0;
    for (int round = 0; round < 2'000; ++round) {
      if (in_use.empty() || (in_use.size() < 12 && draw.below(2) == 0)) {
        const std::size_t pages = 1 + draw.below(9);
        auto slot = spare.reuse(pages * page);
        if (!slot) slot = std::make_unique<mr::detail::pinned_slot>(pages * page, mr::detail::pinned_place{});
        used += pages;
        in_use.push_back(std::move(slot));
      } else {
        std::swap(in_use[draw.below(in_use.size())], in_use.back());
        used -= in_use.back()->bytes() / page;
        spare.keep(std::move(in_use.back()));
        in_use.pop_back();
      }
      most = std::max(most, used);
      REQUIRE(live_pages() <= most);
    }
    CHECK(live_pages() > used);   // free slots were kept
  }
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
      run_on(device, quiet(0));
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
          std::vector<mr::notice> notices;
          const std::string printed = captured_stderr([&] {
            description = run_on(device, {.threads = threads, .notice = [&](const mr::notice& n) {
              if (n.severity == mr::notice_severity::warning) notices.push_back(n);
            }});
          });
          CHECK(description.find("with pageable host slots") != std::string::npos);
          CHECK(printed.empty());
          REQUIRE(notices.size() == 1);
          CHECK(notices[0].kind == mr::notice_kind::setting);
          CHECK(notices[0].text.find("are slower and may wait for training steps") != std::string::npos);
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
