#include "../../eventually.hpp"
#include "device_fixtures.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;
using fake_cuda_test::a_stream;
using fake_cuda_test::for_each_world;
using fake_cuda_test::ok;

TEST_CASE("a row contains its own steps' sums, whenever it arrives, and no call of the step waits") {
  for_each_world([](fake_cuda::order) {
    const a_stream s;
    const column<float> ones(std::vector<float>(5, 1));
    logged f;
    mr::metrics m({.every = 3, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss"), weight = m.mean("weight");
    std::vector<float> step_values(40);
    for (std::size_t i = 0; i < step_values.size(); ++i) step_values[i] = static_cast<float>(1 << (i % 20));
    const column<float> losses(step_values);
    {
      const fake_cuda::no_waiting_here guard;
      for (std::uint64_t step = 0; step < step_values.size(); ++step) {
        auto one = losses.view();
        one.data += step;
        one.shape = {1};
        loss.add(one, {.stream = s.handle});
        weight.add(ones.view(), {.weight = static_cast<double>(step + 1), .stream = s.handle});
        m.count("samples", 7);
        m.maybe_log({.step = step, .epoch = step / 16}, f.out);
      }
    }
    m.finish(f.out);
    m.finish(f.out);   // nothing new: no row
    std::uint64_t first = 0;
    for (const auto& r : f.rows()) {
      double sum = 0;
      for (std::uint64_t step = first; step <= r.step; ++step) sum += static_cast<double>(step_values[step]);
      REQUIRE(r.step >= first);
      const auto steps = static_cast<double>(r.step + 1 - first);
      CHECK(r.find("loss").value_or(-1) == sum / steps);
      CHECK(r.find("weight") == 1);
      CHECK(r.find("samples") == 7 * steps);
      CHECK(r.epoch == r.step / 16);
      first = r.step + 1;
    }
    CHECK(first == step_values.size());
  });
}

TEST_CASE("too many rows in flight: the sums continue, and the skip is counted") {
  fake_cuda::reset({.when = fake_cuda::order::late, .polls = 1 << 30});
  {
    const a_stream s;
    const column<float> value({2});
    logged f;
    mr::metrics m({.every = 2, .device = mr::cuda_metric_sums({.slots = 2})});
    auto loss = m.mean("loss");
    for (std::uint64_t step = 0; step < 12; ++step) {
      loss.add(value.view(), {.weight = static_cast<double>(1 << step), .stream = s.handle});
      m.count("samples", 1);
      CHECK(!m.maybe_log(step, f.out));
    }
    CHECK(m.log_skipped() == 4);
    fake_cuda::run_all();
    m.finish(f.out);
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].step == 1);
    CHECK(rows[1].step == 3);
    CHECK(rows[2].step == 11);
    CHECK(rows[2].find("samples") == 8);
    CHECK(rows[2].find("loss") == 2);
  }
  CHECK(fake_cuda::violations().empty());
}

TEST_CASE("a full log: the row keeps its place and its step, and is written when there is room") {
  fake_cuda::reset({.when = fake_cuda::order::early});
  {
    const a_stream s;
    const column<float> value({3});
    const auto memory = std::make_shared<remembering_sink::shared>();
    mr::log out({.queue_rows = 1, .hold = {}}, remembering_sink{memory});
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums({.slots = 2})});
    auto loss = m.mean("loss");
    std::uint64_t step = 0;
    const auto run_to = [&](std::uint64_t end) {
      for (; step < end; ++step) {
        loss.add(value.view(), {.stream = s.handle});
        m.count("samples", 1);
        m.maybe_log(step, out);
      }
    };
    {
      const std::lock_guard hang(memory->gate);
      out.push({.step = 0});
      REQUIRE(eventually([&] { return memory->entered > 0; }));
      out.push({.step = 0});   // and the queue is full
      run_to(6);
      CHECK(m.log_skipped() == 4);   // two rows wait, the others' steps add up
    }
    CHECK(out.flush());
    m.finish(out);
    out.close();
    REQUIRE(memory->rows.size() == 5);
    CHECK(memory->rows[2].step == 0);
    CHECK(memory->rows[3].step == 1);
    CHECK(memory->rows[4].step == 5);
    CHECK(memory->rows[4].find("samples") == 4);
    CHECK(memory->rows[4].find("loss") == 3);
  }
}

TEST_CASE("read_now() changes nothing: neither the sums nor rows in flight") {
  for_each_world([](fake_cuda::order) {
    const a_stream s;
    const column<float> values({1, 2, 4, 8, 16, 32});
    logged f;
    mr::metrics m({.every = 2, .device = mr::cuda_metric_sums({.slots = 2})});
    auto loss = m.mean("loss");
    for (std::uint64_t step = 0; step < 6; ++step) {
      auto one = values.view();
      one.data += step;
      one.shape = {1};
      loss.add(one, {.stream = s.handle});
      const double expected = step % 2 ? 1.5 * (1 << (step - 1)) : 1 << step;
      CHECK(m.read_now().find("loss").value_or(-1) == expected);
      m.maybe_log(step, f.out);
    }
    m.finish(f.out);
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(rows[i].find("loss") == 1.5 * (1 << 2 * i));
  });
}

TEST_CASE("a captured add counts at each replay, and nothing is handed over meanwhile") {
  for_each_world([](fake_cuda::order) {
    const a_stream s;
    const column<float> value({5});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    loss.add(value.view(), {.stream = s.handle});
    m.maybe_log(1, f.out);
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    loss.add(value.view(), {.weight = 10, .stream = s.handle});
    CHECK(!m.maybe_log(2, f.out));
    CHECK_THROWS_AS(m.read_now(), mr::setup_error);
    CHECK_THROWS_AS(m.restart(), mr::setup_error);
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(s, &graph));
    CHECK(m.log_skipped() == 1);
    cudaGraphExec_t executable = nullptr;
    ok(cudaGraphInstantiate(&executable, graph));
    for (int i = 0; i < 3; ++i) ok(cudaGraphLaunch(executable, s));
    loss.add(1, 1);
    m.maybe_log(3, f.out);
    m.finish(f.out);
    ok(cudaGraphExecDestroy(executable));
    ok(cudaGraphDestroy(graph));
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].find("loss").value_or(-1) == 5);
    CHECK(rows[1].step == 3);
    CHECK(rows[1].find("loss").value_or(-1) == (3 * 10 * 5 + 1) / 31.0);
  });
}

TEST_CASE("the capture of another thread is not disturbed") {
  fake_cuda::reset({.when = fake_cuda::order::late});
  {
    const a_stream s, theirs;
    const column<float> value({5});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    cudaGraph_t graph = nullptr;
    ok(cudaStreamBeginCapture(theirs, cudaStreamCaptureModeGlobal));
    for (std::uint64_t step = 0; step < 20; ++step) {
      loss.add(value.view(), {.stream = s.handle});
      m.maybe_log(step, f.out);
    }
    {
      mr::metrics others({.every = 1, .device = mr::cuda_metric_sums()});
      others.mean("loss").add(value.view(), {.stream = s.handle});
      CHECK(others.read_now().find("loss").value_or(-1) == 5);
    }
    ok(cudaStreamEndCapture(theirs, &graph));
    ok(cudaGraphDestroy(graph));
    m.finish(f.out);
    CHECK(f.rows().size() > 1);
  }
}

TEST_CASE("adds in several streams belong to the row that follows them") {
  for_each_world([](fake_cuda::order) {
    const a_stream first, second;
    const column<float> value({1});
    logged f;
    mr::metrics m({.every = 2, .device = mr::cuda_metric_sums({.slots = 16})});
    auto loss = m.mean("loss");
    for (std::uint64_t step = 0; step < 12; ++step) {
      const auto weight = static_cast<double>(1 << step);
      loss.add(value.view(), {.weight = weight, .stream = step % 3 ? first.handle : second.handle});
      loss.add(value.view(), {.weight = weight, .stream = step % 3 ? nullptr : first.handle});
      loss.add(0, weight);
      m.maybe_log(step, f.out);
    }
    m.finish(f.out);
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 6);
    for (const auto& r : rows) CHECK(*r.find("loss") == doctest::Approx(2.0 / 3));
  });
}

TEST_CASE("rows do not wait for the legacy stream") {
  fake_cuda::reset({.when = fake_cuda::order::late});   // which does nothing unnecessary
  bool ran = false;                                     // exists longer than the work that sets it
  {
    const a_stream s;
    const column<float> value({4});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    ok(cudaLaunchHostFunc(nullptr, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran));
    loss.add(value.view(), {.stream = s.handle});
    m.maybe_log(1, f.out);
    m.finish(f.out);
    CHECK(f.rows().size() == 1);
    CHECK_FALSE(ran);
  }
}

TEST_CASE("a label that is not a class is an error when its row is read, and the row shows the others") {
  for_each_world([](fake_cuda::order) {
    const a_stream s;
    const column<float> logits({5, 4, 5, 4, 5, 4, 4, 5});
    const column<std::int32_t> bad({0, 2, -1, 0}), good({0, 0, 0, 0});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto top = m.accuracy("top1");
    top.add(logits.rows(4), bad.view(), {.stream = s.handle});
    bool failed = false;
    for (std::uint64_t step = 1; step < 20 && !failed; ++step) {
      try {
        m.maybe_log(step, f.out);
      } catch (const mr::data_error& e) {
        failed = true;
        CHECK(e.message().find("2 labels of 'top1'") != std::string::npos);
        CHECK(e.message().find("up to 1") != std::string::npos);
      }
      fake_cuda::run_all();
    }
    CHECK(failed);
    top.add(logits.rows(4), good.view(), {.stream = s.handle});
    m.maybe_log(50, f.out);
    m.finish(f.out);
    std::vector<double> shares;
    for (const auto& r : f.rows())
      if (r.find("top1")) shares.push_back(*r.find("top1"));
    CHECK(shares == std::vector{0.5, 0.75});
  });
}

TEST_CASE("finish() reports bad labels too, after it has written the existing rows") {
  fake_cuda::reset();
  {
    const a_stream s;
    const column<float> logits({5, 4});
    const column<std::int64_t> bad({7});
    logged f;
    mr::metrics m({.device = mr::cuda_metric_sums()});
    m.mean("loss").add(4);
    m.accuracy("top1").add(logits.rows(1), bad.view(), {.stream = s.handle});
    CHECK_THROWS_AS(m.finish(f.out), mr::data_error);
    CHECK_NOTHROW(m.finish(f.out));
    REQUIRE(f.rows().size() == 1);
    CHECK(f.rows()[0].find("loss") == 4);
  }
}

TEST_CASE("with nothing added on the device, rows are immediate, and finish() has none") {
  fake_cuda::reset();
  logged f;
  mr::metrics m({.every = 2, .device = mr::cuda_metric_sums()});
  auto loss = m.mean("loss");
  m.finish(f.out);
  loss.add(3);
  CHECK(!m.maybe_log(1, f.out));
  CHECK(m.maybe_log(2, f.out));
  m.restart();
  CHECK(m.read_now().values.empty());
  CHECK(f.rows().size() == 1);
}

TEST_CASE("the sums' device is current only within a call, and each thread keeps its own") {
  fake_cuda::reset({.devices = 2});
  {
    ok(cudaSetDevice(1));
    const a_stream s;
    const column<float> value({4});
    ok(cudaSetDevice(0));
    logged f;
    const auto current = [] {
      int device = -1;
      ok(cudaGetDevice(&device));
      return device;
    };
    {
      mr::metrics m({.every = 1, .device = mr::cuda_metric_sums({.device = 1})});
      auto loss = m.mean("loss");
      CHECK(current() == 0);
      loss.add(value.view(), {.stream = s.handle});
      CHECK(current() == 0);
      m.maybe_log(1, f.out);
      m.finish(f.out);
      CHECK(current() == 0);
      CHECK(f.rows()[0].find("loss") == 4);
    }
    CHECK(current() == 0);
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
}

TEST_CASE("whatever call fails first, the constructor throws and releases everything") {
  for (const char* function : {"cuCtxPushCurrent", "cudaMalloc", "cudaHostAlloc", "cudaStreamCreateWithFlags",
                               "cudaEventCreateWithFlags", "cudaLaunchHostFunc", "cudaStreamSynchronize"})
    for (std::uint64_t nth = 1;; ++nth) {
      fake_cuda::reset();
      fake_cuda::fail(function, nth, cudaErrorMemoryAllocation);
      bool failed = false;
      try {
        mr::cuda_metric_sums({.slots = 2});
      } catch (const mr::io_error&) {
        failed = true;
      }
      CAPTURE(function);
      CAPTURE(nth);
      fake_cuda::run_all();
      CHECK(fake_cuda::live() == fake_cuda::handles{});
      CHECK((failed || nth > 1));
      if (!failed) break;
      REQUIRE(nth < 100);
    }
  fake_cuda::reset();
}

TEST_CASE("an error of the device reaches the caller, and destroying is quiet, even when the runtime is gone") {
  for (const bool unloaded : {false, true}) {
    fake_cuda::reset();
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    {
      const a_stream s;
      const column<float> value({4});
      loss.add(value.view(), {.stream = s.handle});
      m.maybe_log(1, f.out);
      fake_cuda::run_all();
      if (unloaded) fake_cuda::unload();
      else fake_cuda::break_device(cudaErrorIllegalAddress);
      CHECK_THROWS_AS(m.maybe_log(2, f.out), mr::io_error);
      CHECK_THROWS_AS(m.finish(f.out), mr::io_error);
    }
  }
  fake_cuda::reset();
}

TEST_CASE("impossible options are refused: two owners, too many metrics, options of zero, sides that are mixed") {
  fake_cuda::reset();
  {
    const a_stream s;
    const auto sums = mr::cuda_metric_sums({.max_metrics = 1});
    mr::metrics m({.device = sums});
    CHECK_THROWS_AS(mr::metrics({.device = sums}), mr::setup_error);
    auto top = m.accuracy("top");
    CHECK_THROWS_AS(m.mean("loss"), mr::setup_error);
    m.count("samples", 1);   // needs no memory on the device
    CHECK_THROWS_AS(mr::cuda_metric_sums({.slots = 0}), mr::setup_error);
    CHECK_THROWS_AS(mr::cuda_metric_sums({.max_metrics = 0}), mr::setup_error);
    const column<float> logits({1, 2});
    const column<std::int32_t> label({1});
    auto on_host = label.view();
    on_host.memory = mr::memory_kind::host;
    CHECK_THROWS_AS(top.add(logits.rows(1), on_host, {.stream = s.handle}), mr::setup_error);
    mr::metrics without;
    auto refused = without.accuracy("top");
    CHECK_THROWS_WITH_AS(refused.add(logits.rows(1), label.view(), {.stream = s.handle}),
                         doctest::Contains("metrics.cuh"), mr::setup_error);
  }
}
