// What a session on a GPU promises. Compiled against the fake CUDA runtime and against the real one.
#include "../../eventually.hpp"
#include "kept_batches.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

using namespace contract;

namespace {

/// Tells whether a batch's copy is held up. Outlives what holds it.
class watched_copy {
 public:
  bool is_late(layout& b) {
    b.also_used_on(static_cast<cudaStream_t>(watching_));
    ok(cudaEventRecord(arrived_, watching_));
    for (int i = 0; i < 5 && !arrived_.reached(); ++i) contract::pause();
    return !arrived_.reached();
  }

 private:
  contract::stream watching_;
  contract::event arrived_;
};

}  // namespace

TEST_CASE("session: batches on the device are those of the host, for any threads and slots") {
  for (const int threads : {0, 1, 3})
    for (const std::size_t slots : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      contract::start(slots);
      const contract::stream step;
      keeper kept(20);
      {
        mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = slots}), quiet(threads)};
        for (auto& b : run) {
          REQUIRE(b.size() == rows);
          kept.step(b, b.stream());
        }
      }
      step.synchronize();
      CHECK(kept.batches() == 20);
      CHECK(kept.right());
    }
}

TEST_CASE("session: a released batch is not overwritten before the step in its stream is through") {
  contract::start();
  const contract::stream step;
  keeper kept(20);
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 2}), quiet(2)};
  {
    contract::held until(step);
    for (int i = 0; i < 2; ++i) {
      auto b = run.next();
      kept.step(b, step);
      b.release();   // the step has not even begun
    }
    contract::pause();
    CHECK_FALSE(until.over());
  }
  while (auto b = run.next()) kept.step(b, step);
  step.synchronize();
  CHECK(kept.batches() == 20);
  CHECK(kept.right());
}

TEST_CASE("session: next and release return at once while the step's stream is busy") {
  contract::start();
  const contract::stream step;
  keeper kept(40);
  mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step, .slots = 3}), quiet(2)};
  for (int i = 0; i < 4; ++i) {
    auto b = run.next();
    kept.step(b, step);
  }
  step.synchronize();
  contract::pause();   // what can be read ahead is there
  contract::held until(step);
  for (int i = 0; i < 3; ++i) {   // waiting for the step would be for ever
    auto b = run.next();
    kept.step(b, step);
  }
  CHECK_FALSE(until.over());
  until.let_go();
  step.synchronize();
  CHECK(kept.right());
}

TEST_CASE("session: the device's events say how long it had no batch, whatever a trainer that runs ahead waits for") {
  // A trainer that only launches: with slow steps it waits in next() for slots, with slow loading for data.
  const auto figures_of = [](std::chrono::milliseconds load, std::chrono::milliseconds step_time) {
    contract::start();
    const contract::stream step;
    auto slow = mr::from(numbers(160)) | mr::map([load](int n) {
                  if (n % static_cast<int>(rows) == 0) std::this_thread::sleep_for(load);
                  return made(n);
                }) |
                mr::batch<&example::pixels, &example::label>({.size = rows}) |
                mr::to_device({.device = mr::cuda_device(0), .stream = step, .slots = 2});
    mr::session run{std::move(slow), quiet(1, 2)};
    for (auto& b : run) {
      static_cast<void>(b);
      ok(cudaLaunchHostFunc(
          step, [](void* ms) { std::this_thread::sleep_for(*static_cast<std::chrono::milliseconds*>(ms)); },
          &step_time));
    }
    step.synchronize();
    return run.figures();
  };
  CHECK(at_some_scale([&](int scale) {
    const std::chrono::milliseconds none(0), longer(12 * scale);
    const mr::flow_figures busy = figures_of(none, longer), idle = figures_of(longer, longer / 12);
    REQUIRE(busy.device_gap_ns);
    REQUIRE(idle.device_gap_ns);
    return busy.find(mr::stage_kind::step)->starved_share() > 0.5 && busy.data_wait_share() < 0.3 &&
           *idle.device_gap_ns > static_cast<std::uint64_t>(40 * scale) * 5'000'000 &&
           idle.data_wait_share() > busy.data_wait_share();
  }));
}

TEST_CASE("session: what lies between two epochs of a loop is no gap of the device") {
  contract::start();
  const contract::stream step;
  const auto start = std::chrono::steady_clock::now();
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 3}), quiet(2, 2)};
  for (auto& b : run.epoch(0)) static_cast<void>(b);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  for (auto& b : run.epoch(1)) static_cast<void>(b);
  const std::chrono::nanoseconds all = std::chrono::steady_clock::now() - start;
  REQUIRE(run.figures().device_gap_ns);
  CHECK(*run.figures().device_gap_ns + 1'500'000'000 <= static_cast<std::uint64_t>(all.count()));
}

TEST_CASE("session: a batch that is loaded late is handed out while the copy before it still waits for the step") {
  contract::start();
  const contract::stream step;
  keeper kept(20);
  std::atomic<bool> open{false};
  auto late = mr::from(numbers(160)) | mr::map([&open](int n) {
                while (n >= 4 * static_cast<int>(rows) && !open) contract::pause();
                return made(n);
              }) |
              mr::batch<&example::pixels, &example::label>({.size = rows}) | mr::prefetch({.batches = 2}) |
              mr::to_device({.device = mr::cuda_device(0), .stream = step, .slots = 3});
  mr::session run{std::move(late), quiet(2)};
  const auto take = [&] {
    auto b = run.next();
    kept.step(b, step);
  };
  contract::held until(step);
  for (int i = 0; i < 4; ++i) take();
  contract::pause();   // batch 3 is being copied, behind the step; of the next there is nothing yet
  open = true;
  std::atomic<bool> taken{false};
  std::thread patience([&] {
    eventually([&] { return taken.load(); });
    until.let_go();
  });
  take();
  CHECK_FALSE(until.over());
  taken = true;
  patience.join();
  while (kept.batches() < 20) take();
  step.synchronize();
  CHECK(kept.right());
}

TEST_CASE("session: batches may be released in any order") {
  contract::start();
  const contract::stream step;
  keeper kept(40);
  mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step, .slots = 3}), quiet(2)};
  std::optional<layout> older;
  while (auto b = run.next()) {
    kept.step(b, step);
    if (b.step() % 2 == 0) older.emplace(std::move(b));
    else {
      b.release();
      older.reset();
    }
  }
  older.reset();
  step.synchronize();
  CHECK(kept.batches() == 40);
  CHECK(kept.right());
}

TEST_CASE("session: a batch that is used on more streams waits for each of them, and each waits for it") {
  for (const bool first_is_slow : {true, false}) {
    contract::start();
    const contract::stream step, other;
    keeper kept(20), kept_too(20);
    watched_copy next_copy;
    mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 1}), quiet(2)};
    const auto use = [&](layout& b) {
      b.also_used_on(static_cast<cudaStream_t>(other));
      kept.step(b, step);
      kept_too.step(b, other);
    };
    {
      contract::held until(first_is_slow ? step : other);
      auto b = run.next();
      use(b);
      b.release();
      (first_is_slow ? other : step).synchronize();
      b = run.next();
      CHECK(next_copy.is_late(b));
      CHECK_FALSE(until.over());
      use(b);
    }
    while (auto b = run.next()) use(b);
    step.synchronize();
    other.synchronize();
    CHECK(kept.right());
    CHECK(kept_too.right());
  }
}

TEST_CASE("session: a stream that is named beside the step's waits for a copy that is late") {
  contract::start();
  const contract::stream slow, step;
  watched_copy next_copy;
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 1}), quiet(2)};
  contract::held until(slow);
  auto b = run.next();
  b.also_used_on(static_cast<cudaStream_t>(slow));
  b.release();
  b = run.next();
  CHECK(next_copy.is_late(b));
  CHECK_FALSE(until.over());
}

TEST_CASE("session: each batch waits for the streams that it was used on, and those of another do not stand in") {
  contract::start();
  const contract::stream step, first, second;
  keeper kept(20);
  watched_copy next_copy;
  // Without threads nothing is copied before both are back.
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 2}), quiet(0)};
  {
    contract::held until(first);
    auto b = run.next();
    b.also_used_on(static_cast<cudaStream_t>(first));
    kept.step(b, step);
    auto later = run.next();
    later.also_used_on(static_cast<cudaStream_t>(second));
    kept.step(later, step);
    b.release();
    later.release();
    b = run.next();
    CHECK(next_copy.is_late(b));   // it goes where the first one lay
    CHECK_FALSE(until.over());
    kept.step(b, step);
  }
  while (auto b = run.next()) kept.step(b, step);
  step.synchronize();
  CHECK(kept.right());
}

TEST_CASE("session: the user's stream may be the legacy one, the thread's own, a blocking or a non-blocking one") {
  contract::start();
  const contract::stream blocking(cudaStreamDefault), apart(cudaStreamNonBlocking);
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread,
                                    static_cast<cudaStream_t>(blocking), static_cast<cudaStream_t>(apart)}) {
    keeper kept(20);
    mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = stream}), quiet(2)};
    for (auto& b : run) kept.step(b, b.stream());
    ok(cudaStreamSynchronize(stream));
    CHECK(kept.right());
  }
}

TEST_CASE("session: a batch that is kept stays as it is, even after its session") {
  contract::start();
  const contract::stream step;
  keeper kept(1);
  layout first;
  {
    mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
    first = run.next();
    run.next();
    run.next();
    run.next();
  }
  kept.step(first, step);
  first.release();
  step.synchronize();
  CHECK(kept.right());
}

TEST_CASE("session: it may be left at any batch, with copies and steps under way") {
  for (const std::uint64_t last : {0, 1, 2, 5, 11}) {
    contract::start(last + 1);
    const contract::stream step;
    keeper kept(20);
    {
      mr::session run{flow(1'600, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
      for (auto& b : run) {
        kept.step(b, step);
        if (b.step() == last) break;
      }
    }
    step.synchronize();
    CHECK(kept.batches() == last + 1);
    CHECK(kept.right());
  }
}

TEST_CASE("session: an error of the data comes at its batch, after all before it") {
  contract::start();
  const contract::stream step;
  keeper kept(20);
  auto broken = mr::from(numbers(160)) | mr::map([](int n) {
                  if (n == 85) throw mr::data_error("a bad sample", "Mend it");
                  return made(n);
                }) |
                mr::batch<&example::pixels, &example::label>({.size = rows}) |
                mr::to_device({.device = mr::cuda_device(0), .stream = step});
  mr::session run{std::move(broken), quiet(2)};
  CHECK_THROWS_WITH_AS(
      for (auto& b
           : run) kept.step(b, step),
      doctest::Contains("a bad sample"), mr::data_error);
  step.synchronize();
  CHECK(kept.batches() == 10);
  CHECK(kept.right());
}

TEST_CASE("session: a view comes to the host as it is behind the work of the batch's stream") {
  contract::start();
  const contract::stream step;
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 1}), quiet(2)};
  run.next().release();
  auto b = run.next();
  const auto pixels = b.get<&example::pixels>();
  const auto labels = b.to_host(b.get<&example::label>());
  for (std::size_t i = 0; i < rows; ++i) CHECK(labels(i) == static_cast<std::int32_t>(rows + i));
  CHECK(b.to_host(pixels)(1, 3) == made(rows + 1).pixels[3]);
  ok(cudaMemsetAsync(pixels.data, 77, pixels.size_bytes(), step));
  const auto copy = b.to_host(pixels);
  CHECK(copy.shape() == pixels.shape);
  CHECK(contract::all_are(copy.data(), copy.size(), 77));
}

TEST_CASE("session: the host is told that it cannot read a column, by its name") {
  contract::start();
  mr::session run{flow(160), quiet(2)};
  auto b = run.next();
  CHECK_THROWS_WITH_AS(b.get<&example::label>().host(), doctest::Contains("example::label is in GPU memory"),
                       mr::setup_error);
  CHECK_THROWS_AS(b.get<&example::label>().span(), mr::setup_error);
  CHECK(b.get<&example::pixels>()[1].data == b.get<&example::pixels>().data + b.get<&example::pixels>().shape[1]);
#ifndef NDEBUG
  const auto elsewhere = doctest::Contains("example::label is in GPU memory");
  CHECK_THROWS_WITH_AS(b.get<&example::label>()[0], elsewhere, mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(b.get<&example::label>()(0), elsewhere, mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(b.get<&example::label>().begin(), elsewhere, mr::detail::bad_element_access);
#endif
}

TEST_CASE("session: what it says at start names the device and counts its slots apart") {
  contract::start();
  mr::session run{flow(160, {.device = mr::cuda_device(0), .slots = 5}), quiet(2)};
  CHECK(run.description().find("cuda:0 (") != std::string::npos);
  CHECK(run.description().find("; on the device 5 slots x ") != std::string::npos);
  CHECK(run.slots() == 5);
}

TEST_CASE("session: a short last batch, and the next epoch over the border") {
  contract::start();
  const contract::stream step;
  std::size_t samples = 0, batches = 0;
  auto short_last = mr::from(numbers(100)) | mr::map(made) |
                    mr::batch<&example::pixels, &example::label>({.size = rows, .drop_last = false}) |
                    mr::to_device({.device = mr::cuda_device(0), .stream = step});
  mr::session run{std::move(short_last), quiet(2, 3)};
  for (std::uint64_t e = 0; e < 3; ++e)
    for (auto& b : run.epoch(e)) {
      CHECK(b.epoch() == e);
      samples += b.size();
      ++batches;
      std::int32_t last = -1;
      const auto labels = b.get<&example::label>();
      ok(cudaMemcpyAsync(&last, labels.data + b.size() - 1, sizeof last, cudaMemcpyDeviceToHost, step));
      step.synchronize();
      CHECK(static_cast<std::size_t>(last) == (samples - 1) % 100);
    }
  CHECK(samples == 300);
  CHECK(batches == 39);
}
