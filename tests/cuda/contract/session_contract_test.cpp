// The contract of a session on a GPU. Compiled with the fake CUDA runtime and the real one.
#include "../../eventually.hpp"
#include "recorded_batches.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

using namespace contract;

namespace {

/// Reports whether a batch's copy is delayed. Outlives the block.
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
      batch_recorder recorder(20);
      {
        mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = slots}), quiet(threads)};
        for (auto& b : run) {
          REQUIRE(b.size() == rows);
          recorder.step(b, b.stream());
        }
      }
      step.synchronize();
      CHECK(recorder.batches() == 20);
      CHECK(recorder.right());
    }
}

TEST_CASE("session: a released batch is not overwritten before the step in its stream completes") {
  contract::start();
  const contract::stream step;
  batch_recorder recorder(20);
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 2}), quiet(2)};
  {
    contract::stream_block block(step);
    for (int i = 0; i < 2; ++i) {
      auto b = run.next();
      recorder.step(b, step);
      b.release();   // the step has not begun
    }
    contract::pause();
    CHECK_FALSE(block.is_over());
  }
  while (auto b = run.next()) recorder.step(b, step);
  step.synchronize();
  CHECK(recorder.batches() == 20);
  CHECK(recorder.right());
}

TEST_CASE("session: next and release return at once while the step's stream is busy") {
  contract::start();
  const contract::stream step;
  batch_recorder recorder(40);
  mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step, .slots = 3}), quiet(2)};
  for (int i = 0; i < 4; ++i) {
    auto b = run.next();
    recorder.step(b, step);
  }
  step.synchronize();
  contract::pause();   // the prefetched batches are ready
  contract::stream_block block(step);
  for (int i = 0; i < 3; ++i) {   // waiting for the step would never end
    auto b = run.next();
    recorder.step(b, step);
  }
  CHECK_FALSE(block.is_over());
  block.unblock();
  step.synchronize();
  CHECK(recorder.right());
}

TEST_CASE("session: the device's events measure the time without a batch, even if the trainer runs ahead") {
  // A trainer that only launches: with slow steps it waits in next() for slots, with slow loading for data.
  const auto statistics_of = [](std::chrono::milliseconds load, std::chrono::milliseconds step_time) {
    contract::start();
    const contract::stream step;
    auto slow = mr::from(numbers(160)) | mr::map([load](int n) {
                  if (n % static_cast<int>(rows) == 0) std::this_thread::sleep_for(load);
                  return example_of(n);
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
    return run.statistics();
  };
  CHECK(at_some_scale([&](int scale) {
    const std::chrono::milliseconds none(0), longer(12 * scale);
    const mr::flow_statistics busy = statistics_of(none, longer), idle = statistics_of(longer, longer / 12);
    REQUIRE(busy.device_gap_ns);
    REQUIRE(idle.device_gap_ns);
    return busy.find(mr::stage_kind::step)->starved_share() > 0.5 && busy.data_wait_share() < 0.3 &&
           *idle.device_gap_ns > static_cast<std::uint64_t>(40 * scale) * 5'000'000 &&
           idle.data_wait_share() > busy.data_wait_share();
  }));
}

TEST_CASE("session: the time between two epochs of a loop is not a gap of the device") {
  contract::start();
  const contract::stream step;
  const auto start = std::chrono::steady_clock::now();
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 3}), quiet(2, 2)};
  for (auto& b : run.epoch(0)) static_cast<void>(b);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  for (auto& b : run.epoch(1)) static_cast<void>(b);
  const std::chrono::nanoseconds all = std::chrono::steady_clock::now() - start;
  REQUIRE(run.statistics().device_gap_ns);
  CHECK(*run.statistics().device_gap_ns + 1'500'000'000 <= static_cast<std::uint64_t>(all.count()));
}

TEST_CASE("session: a late batch is delivered while the previous copy still waits for the step") {
  contract::start();
  const contract::stream step;
  batch_recorder recorder(20);
  std::atomic<bool> open{false};
  auto late = mr::from(numbers(160)) | mr::map([&open](int n) {
                while (n >= 4 * static_cast<int>(rows) && !open) contract::pause();
                return example_of(n);
              }) |
              mr::batch<&example::pixels, &example::label>({.size = rows}) | mr::prefetch({.batches = 2}) |
              mr::to_device({.device = mr::cuda_device(0), .stream = step, .slots = 3});
  mr::session run{std::move(late), quiet(2)};
  const auto take = [&] {
    auto b = run.next();
    recorder.step(b, step);
  };
  contract::stream_block block(step);
  for (int i = 0; i < 4; ++i) take();
  contract::pause();   // batch 3 is being copied, after the step; the next one is not loaded yet
  open = true;
  std::atomic<bool> is_taken{false};
  std::thread patience([&] {
    eventually([&] { return is_taken.load(); });
    block.unblock();
  });
  take();
  CHECK_FALSE(block.is_over());
  is_taken = true;
  patience.join();
  while (recorder.batches() < 20) take();
  step.synchronize();
  CHECK(recorder.right());
}

TEST_CASE("session: batches may be released in any order") {
  contract::start();
  const contract::stream step;
  batch_recorder recorder(40);
  mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step, .slots = 3}), quiet(2)};
  std::optional<layout> older;
  while (auto b = run.next()) {
    recorder.step(b, step);
    if (b.step() % 2 == 0) older.emplace(std::move(b));
    else {
      b.release();
      older.reset();
    }
  }
  older.reset();
  step.synchronize();
  CHECK(recorder.batches() == 40);
  CHECK(recorder.right());
}

TEST_CASE("session: a batch that several streams use waits for each of them, and each waits for it") {
  for (const bool first_is_slow : {true, false}) {
    contract::start();
    const contract::stream step, other;
    batch_recorder recorder(20), other_recorder(20);
    watched_copy next_copy;
    mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 1}), quiet(2)};
    const auto use = [&](layout& b) {
      b.also_used_on(static_cast<cudaStream_t>(other));
      recorder.step(b, step);
      other_recorder.step(b, other);
    };
    {
      contract::stream_block block(first_is_slow ? step : other);
      auto b = run.next();
      use(b);
      b.release();
      (first_is_slow ? other : step).synchronize();
      b = run.next();
      CHECK(next_copy.is_late(b));
      CHECK_FALSE(block.is_over());
      use(b);
    }
    while (auto b = run.next()) use(b);
    step.synchronize();
    other.synchronize();
    CHECK(recorder.right());
    CHECK(other_recorder.right());
  }
}

TEST_CASE("session: a stream in addition to the step's waits for a delayed copy") {
  contract::start();
  const contract::stream slow, step;
  watched_copy next_copy;
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 1}), quiet(2)};
  contract::stream_block block(slow);
  auto b = run.next();
  b.also_used_on(static_cast<cudaStream_t>(slow));
  b.release();
  b = run.next();
  CHECK(next_copy.is_late(b));
  CHECK_FALSE(block.is_over());
}

TEST_CASE("session: each batch waits for the streams that used it, and not for those of another batch") {
  contract::start();
  const contract::stream step, first, second;
  batch_recorder recorder(20);
  watched_copy next_copy;
  // Without threads, nothing is copied before both are released.
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 2}), quiet(0)};
  {
    contract::stream_block block(first);
    auto b = run.next();
    b.also_used_on(static_cast<cudaStream_t>(first));
    recorder.step(b, step);
    auto later = run.next();
    later.also_used_on(static_cast<cudaStream_t>(second));
    recorder.step(later, step);
    b.release();
    later.release();
    b = run.next();
    CHECK(next_copy.is_late(b));   // it uses the slot of the first one
    CHECK_FALSE(block.is_over());
    recorder.step(b, step);
  }
  while (auto b = run.next()) recorder.step(b, step);
  step.synchronize();
  CHECK(recorder.right());
}

TEST_CASE("session: the user's stream may be the legacy one, the thread's own, a blocking or a non-blocking one") {
  contract::start();
  const contract::stream blocking(cudaStreamDefault), apart(cudaStreamNonBlocking);
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread,
                                    static_cast<cudaStream_t>(blocking), static_cast<cudaStream_t>(apart)}) {
    batch_recorder recorder(20);
    mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = stream}), quiet(2)};
    for (auto& b : run) recorder.step(b, b.stream());
    ok(cudaStreamSynchronize(stream));
    CHECK(recorder.right());
  }
}

TEST_CASE("session: a moved batch stays unchanged, even after its session") {
  contract::start();
  const contract::stream step;
  batch_recorder recorder(1);
  layout first;
  {
    mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
    first = run.next();
    run.next();
    run.next();
    run.next();
  }
  recorder.step(first, step);
  first.release();
  step.synchronize();
  CHECK(recorder.right());
}

TEST_CASE("session: it may end at any batch, with copies and steps in progress") {
  for (const std::uint64_t last : {0, 1, 2, 5, 11}) {
    contract::start(last + 1);
    const contract::stream step;
    batch_recorder recorder(20);
    {
      mr::session run{flow(1'600, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
      for (auto& b : run) {
        recorder.step(b, step);
        if (b.step() == last) break;
      }
    }
    step.synchronize();
    CHECK(recorder.batches() == last + 1);
    CHECK(recorder.right());
  }
}

TEST_CASE("session: a data error is thrown at its batch, after all earlier ones") {
  contract::start();
  const contract::stream step;
  batch_recorder recorder(20);
  auto broken = mr::from(numbers(160)) | mr::map([](int n) {
                  if (n == 85) throw mr::data_error("a bad sample", "Mend it");
                  return example_of(n);
                }) |
                mr::batch<&example::pixels, &example::label>({.size = rows}) |
                mr::to_device({.device = mr::cuda_device(0), .stream = step});
  mr::session run{std::move(broken), quiet(2)};
  CHECK_THROWS_WITH_AS(
      for (auto& b
           : run) recorder.step(b, step),
      doctest::Contains("a bad sample"), mr::data_error);
  step.synchronize();
  CHECK(recorder.batches() == 10);
  CHECK(recorder.right());
}

TEST_CASE("session: to_host() returns a view as it is after the work of the batch's stream") {
  contract::start();
  const contract::stream step;
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 1}), quiet(2)};
  run.next().release();
  auto b = run.next();
  const auto pixels = b.get<&example::pixels>();
  const auto labels = b.to_host(b.get<&example::label>());
  for (std::size_t i = 0; i < rows; ++i) CHECK(labels(i) == static_cast<std::int32_t>(rows + i));
  CHECK(b.to_host(pixels)(1, 3) == example_of(rows + 1).pixels[3]);
  ok(cudaMemsetAsync(pixels.data, 77, pixels.size_bytes(), step));
  const auto copy = b.to_host(pixels);
  CHECK(copy.shape() == pixels.shape);
  CHECK(contract::all_are(copy.data(), copy.size(), 77));
}

TEST_CASE("session: an error names the column that the host cannot read") {
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

TEST_CASE("session: the notice at the start names the device and counts its slots separately") {
  contract::start();
  mr::session run{flow(160, {.device = mr::cuda_device(0), .slots = 5}), quiet(2)};
  CHECK(run.description().find("cuda:0 (") != std::string::npos);
  CHECK(run.description().find("; on the device 5 slots x ") != std::string::npos);
  CHECK(run.slots() == 5);
}

TEST_CASE("session: a short last batch, and the next epoch across the boundary") {
  contract::start();
  const contract::stream step;
  std::size_t samples = 0, batches = 0;
  auto short_last = mr::from(numbers(100)) | mr::map(example_of) |
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
