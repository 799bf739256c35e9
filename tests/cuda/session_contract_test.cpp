// What a session on a GPU promises. Compiled against the fake CUDA runtime and against the real one.
#include "../run/quiet_sessions.hpp"
#include "contract.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/run/feed.hpp>
#include <millrace/stages/from.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace mr = millrace;
using contract::ok;

namespace {

constexpr std::size_t rows = 8, width = 1'000;   // two pages a batch, not a whole number of them

struct example {
  std::array<std::uint8_t, width> pixels;
  std::int32_t label;
};

example made(int n) {
  example e{};
  for (std::size_t i = 0; i < width; ++i) e.pixels[i] = static_cast<std::uint8_t>(n * 7 + static_cast<int>(i % 31));
  e.label = n;
  return e;
}

using layout = mr::batch_of<&example::pixels, &example::label>;

auto flow(int samples, mr::to_device_options where = {.device = mr::cuda_device(0)}) {
  return mr::from(numbers(samples)) | mr::map(made) |
         mr::batch<&example::pixels, &example::label>({.size = rows}) | mr::prefetch({.batches = 2}) |
         mr::to_device(std::move(where));
}

/// A training step that keeps what it saw: copies, in a stream of the user's, out of the batch.
class keeper {
 public:
  explicit keeper(std::size_t batches) : kept_(contract::make_pinned(batches * bytes)) {}

  void step(const layout& b, cudaStream_t stream) {
    const auto pixels = b.get<&example::pixels>();
    unsigned char* const to = kept_.get() + batches_++ * bytes;
    ok(cudaMemcpyAsync(to, pixels.data, pixels.size_bytes(), cudaMemcpyDeviceToHost, stream));
    ok(cudaMemcpyAsync(to + width * rows, b.get<&example::label>().data, 4 * b.size(), cudaMemcpyDeviceToHost, stream));
  }

  /// Call once all is done: whether they are batches 0, 1, ... of the flow.
  bool right(int first_sample = 0) const {
    for (std::size_t n = 0; n < batches_; ++n)
      for (std::size_t i = 0; i < rows; ++i) {
        const example e = made(first_sample + static_cast<int>(n * rows + i));
        if (std::memcmp(kept_.get() + n * bytes + i * width, e.pixels.data(), width) != 0) return false;
        if (std::memcmp(kept_.get() + n * bytes + rows * width + 4 * i, &e.label, 4) != 0) return false;
      }
    return true;
  }
  std::size_t batches() const { return batches_; }

 private:
  static constexpr std::size_t bytes = rows * width + rows * 4;
  contract::pinned_memory kept_;
  std::size_t batches_ = 0;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

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
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    auto b = run.next();
    kept.step(b, step);
  }
  CHECK_FALSE(until.over());
#ifndef MILLRACE_FAKE_CUDA
  CHECK(milliseconds_since(start) < 5);
#else
  CHECK(milliseconds_since(start) < 5'000);   // of a machine that does much else; waiting would be for ever
#endif
  until.let_go();
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
  contract::start();
  const contract::stream step, other;
  keeper kept(20), kept_too(20);
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 2}), quiet(2)};
  {
    contract::held until(other);
    auto b = run.next();
    b.also_used_on(other);
    kept.step(b, step);
    kept_too.step(b, other);
    b.release();
    b = run.next();
    b.also_used_on(other);
    kept.step(b, step);
    kept_too.step(b, other);
    b.release();
    step.synchronize();
    contract::pause();
    CHECK_FALSE(until.over());
  }
  while (auto b = run.next()) {
    b.also_used_on(other);
    kept.step(b, step);
    kept_too.step(b, other);
  }
  step.synchronize();
  other.synchronize();
  CHECK(kept.right());
  CHECK(kept_too.right());
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

TEST_CASE("session: two of them share a device, batch by batch") {
  contract::start();
  const contract::stream train_step, valid_step;
  const auto device = mr::cuda_device(0);
  keeper trained(20), validated(20);
  mr::session train{flow(160, {.device = device, .stream = train_step}), quiet(2)};
  mr::session valid{flow(160, {.device = device, .stream = valid_step}), quiet(1)};
  for (auto& b : train) {
    trained.step(b, train_step);
    auto v = valid.next();
    validated.step(v, valid_step);
  }
  train_step.synchronize();
  valid_step.synchronize();
  CHECK(trained.right());
  CHECK(validated.right());
}

TEST_CASE("session: one on each device of the process") {
  contract::start(1, 2);
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  if (count < 2) {
    MESSAGE("one device here: seen with the fake runtime alone");
    return;
  }
  keeper first(20), second(20);
  const contract::stream on_0;
  ok(cudaSetDevice(1));
  const contract::stream on_1;
  ok(cudaSetDevice(0));
  mr::session a{flow(160, {.device = mr::cuda_device(0), .stream = on_0}), quiet(2)};
  mr::session b{flow(160, {.device = mr::cuda_device(1), .stream = on_1}), quiet(2)};
  for (auto& batch : a) {
    first.step(batch, on_0);
    auto other = b.next();
    ok(cudaSetDevice(1));
    second.step(other, on_1);
    ok(cudaSetDevice(0));
  }
  on_0.synchronize();
  on_1.synchronize();
  CHECK(first.right());
  CHECK(second.right());
}

TEST_CASE("session: a batch asked for during a capture is refused; the capture and the session live on") {
  contract::start();
  const contract::stream step;
  keeper kept(20);
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
  {
    auto b = run.next();
    kept.step(b, step);
  }
  contract::pause();
  ok(cudaStreamBeginCapture(step, cudaStreamCaptureModeThreadLocal));
  CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("being captured"), mr::setup_error);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(step, &graph));
  cudaGraphDestroy(graph);
  while (auto b = run.next()) kept.step(b, step);
  step.synchronize();
  CHECK(kept.batches() == 20);
  CHECK(kept.right());
}

TEST_CASE("session: a capture on the user's thread survives all that our threads do meanwhile") {
  contract::start();
  const contract::stream step, captured;
  keeper kept(40);
  mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
  for (int i = 0; i < 40; ++i) {
    // Batches are copied and host slots given back while this capture is open.
    ok(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
    cudaGraphDestroy(graph);
    auto b = run.next();
    kept.step(b, step);
  }
  step.synchronize();
  CHECK(kept.right());
}

TEST_CASE("session: with fixed slots a step that was captured once for each slot replays on every batch") {
  contract::start();
  const contract::stream step;
  constexpr std::size_t pixel_bytes = rows * width;
  const auto seen = contract::make_pinned(40 * pixel_bytes);
  const auto model = contract::make_device(pixel_bytes);
  std::vector<cudaGraphExec_t> step_of_slot;
  {
    mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step, .slots = 3, .fixed_slots = true}),
                    quiet(2)};
    step_of_slot.resize(run.slots());
    for (auto& b : run) {
      auto& graph_step = step_of_slot[b.slot()];
      if (!graph_step) {
        cudaGraph_t graph = nullptr;
        ok(cudaStreamBeginCapture(step, cudaStreamCaptureModeThreadLocal));
        ok(cudaMemcpyAsync(model.get(), b.get<&example::pixels>().data, pixel_bytes, cudaMemcpyDeviceToDevice, step));
        ok(cudaStreamEndCapture(step, &graph));
        ok(cudaGraphInstantiate(&graph_step, graph, 0));
        ok(cudaGraphDestroy(graph));
      }
      ok(cudaGraphLaunch(graph_step, step));
      ok(cudaMemcpyAsync(seen.get() + b.step() * pixel_bytes, model.get(), pixel_bytes, cudaMemcpyDeviceToHost, step));
    }
  }
  step.synchronize();
  for (auto s : step_of_slot) ok(cudaGraphExecDestroy(s));
  for (std::size_t i = 0; i < 320; ++i)
    REQUIRE(std::memcmp(seen.get() + i * width, made(static_cast<int>(i)).pixels.data(), width) == 0);
}

TEST_CASE("session: the host is told that it cannot read a column, by its name") {
  contract::start();
  mr::session run{flow(160), quiet(2)};
  auto b = run.next();
  CHECK_THROWS_WITH_AS(b.get<&example::label>().host(), doctest::Contains("example::label lies in GPU memory"),
                       mr::setup_error);
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
