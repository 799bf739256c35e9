// Metrics on a device, in programs with unusual habits.
#include "device_fixtures.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>
#include <thread>

namespace mr = millrace;
using fake_cuda_test::a_stream;
using fake_cuda_test::ok;

TEST_CASE("adds on several threads in the empty stream, in a program with per-thread default streams") {
  fake_cuda::reset({.when = fake_cuda::order::late, .null_per_thread = true});
  {
    const column<float> value({1, 2, 4, 8});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    for (std::size_t step = 0; step < 4; ++step) {
      auto one = value.view();
      one.data += step;
      one.shape = {1};
      std::thread([&] { loss.add(one); }).join();
      m.maybe_log(step, f.out);
    }
    m.finish(f.out);
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(rows[i].find("loss").value_or(-1) == 1 << i);
  }
}

TEST_CASE("an error that the trainer has not yet checked is still there after maybe_log(), and rows are still "
          "delivered") {
  fake_cuda::reset({.when = fake_cuda::order::late, .polls = 3});
  {
    const a_stream s;
    const column<float> value({5});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums({.slots = 64})});
    auto loss = m.mean("loss");
    std::uint64_t step = 0, rows = 0;
    const auto train_step = [&] {
      loss.add(value.view(), {.stream = s.handle});
      rows += m.maybe_log(step++, f.out);
    };
    for (int i = 0; i < 8; ++i) {
      train_step();
      CHECK(cudaSetDevice(1'000) == cudaErrorInvalidDevice);
      train_step();
      CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    }
    CHECK(cudaSetDevice(1'000) == cudaErrorInvalidDevice);   // of a trainer that never checks
    rows = 0;
    for (int i = 0; i < 20; ++i) train_step();
    CHECK(rows > 0);
    cudaGetLastError();
    m.finish(f.out);
  }
}

TEST_CASE("metrics that are destroyed while adds are pending wait for the stream of the last add") {
  using fake_cuda::order;
  for (const order when : {order::late, order::shuffled})
    for (const bool captured : {false, true}) {
      fake_cuda::reset({.when = when});
      {
        const a_stream s;
        const column<float> value({5});
        cudaGraph_t graph = nullptr;
        {
          mr::metrics m({.device = mr::cuda_metric_sums()});
          m.mean("loss").add(value.view(), {.stream = s.handle});
          if (captured) {
            fake_cuda::run_all();
            fake_cuda_test::ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
          }
        }
        if (captured) fake_cuda_test::ok(cudaStreamEndCapture(s, &graph));   // the capture is still valid
        if (graph) cudaGraphDestroy(graph);
      }
      CHECK(fake_cuda::violations() == std::vector<std::string>{});
      CHECK(fake_cuda::live() == fake_cuda::handles{});
    }
}

TEST_CASE("sums without a GPU's number are on the current GPU, and views on another GPU are rejected by name") {
  fake_cuda::reset({.devices = 2});
  {
    fake_cuda_test::ok(cudaSetDevice(1));
    const column<float> value({4, 5});
    const column<std::int32_t> label({0});
    mr::metrics m({.device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    loss.add(value.view());   // in the legacy stream of GPU 1
    CHECK(m.read_now().find("loss") == 4.5);

    mr::metrics elsewhere({.device = mr::cuda_metric_sums({.device = 0})});
    CHECK_THROWS_WITH_AS(elsewhere.mean("loss").add(value.view()), doctest::Contains("is in the memory of GPU 1"),
                         mr::setup_error);
    CHECK_THROWS_WITH_AS(elsewhere.accuracy("top1").add(value.rows(1), label.view()),
                         doctest::Contains("would run on GPU 0"), mr::setup_error);
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::reset();
}

TEST_CASE("sums in the context of the trainer, whose memory the runtime does not describe") {
  fake_cuda::reset();
  void* const own = fake_cuda::create_context(0);
  {
    mr::metrics in_primary({.device = mr::cuda_metric_sums()});
    auto rejected = in_primary.mean("loss");
    fake_cuda::set_current_context(own);
    const column<float> value({4, 5});
    mr::metrics m({.device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    loss.add(value.view());   // in the legacy stream of this context
    CHECK(m.read_now().find("loss") == 4.5);
    CHECK(fake_cuda::current_context() == own);
    CHECK_THROWS_WITH_AS(rejected.add(value.view()), doctest::Contains("was created in a different context"),
                         mr::setup_error);
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::set_current_context(nullptr);
  fake_cuda::reset();
}

namespace {

std::uint64_t launches() { return fake_cuda::calls("cudaLaunchHostFunc"); }

/// Five means and an accuracy, added separately or as groups; one of the means has values for several blocks.
struct six_metrics {
  mr::metrics all{{.device = mr::cuda_metric_sums()}};
  std::vector<mr::mean_metric> means;
  mr::accuracy_metric top = all.accuracy("top", {.top_k = 2});
  column<float> few{{0.1F, 0.7F, 1e-3F}}, many{std::vector<float>(10'000, 0.3F)}, logits{{1, 5, 3, 2, 2, 1}};
  column<std::int32_t> labels{{2, 0}};
  cudaStream_t stream;

  explicit six_metrics(cudaStream_t s) : stream(s) {
    for (int i = 0; i < 5; ++i) means.push_back(all.mean("m" + std::to_string(i)));
  }
  void add() {
    for (std::size_t i = 0; i < means.size(); ++i)
      means[i].add(i == 3 ? many.view() : few.view(), {.weight = 1 + 0.1 * static_cast<double>(i), .stream = stream});
    top.add(logits.rows(2), labels.view(), {.stream = stream});
  }
};

}  // namespace

TEST_CASE("a group of adds is one kernel, two with a long vector, and has the bits of separate adds") {
  fake_cuda_test::for_each_world([](fake_cuda::order) {
    const fake_cuda_test::a_stream s;
    six_metrics separate(s), together(s);
    const std::uint64_t before = launches();
    for (int step = 0; step < 3; ++step) separate.add();
    CHECK(launches() - before == 3 * 7);
    for (int step = 0; step < 3; ++step) together.all.add_together([&] { together.add(); });
    CHECK(launches() - before == 3 * 7 + 3 * 2);
    const mr::row expected = separate.all.read_now(), got = together.all.read_now();
    REQUIRE(got.values.size() == expected.values.size());
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      CHECK(got.values[i].name == expected.values[i].name);
      CHECK(got.values[i].value == expected.values[i].value);
    }
  });
}

TEST_CASE("groups: views for one metric, more than eight views, streams, hand-overs inside, groups inside") {
  fake_cuda_test::for_each_world([](fake_cuda::order) {
    const fake_cuda_test::a_stream s, other;
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    std::vector<mr::mean_metric> means;
    for (int i = 0; i < 10; ++i) means.push_back(m.mean("m" + std::to_string(i)));
    const column<float> one({1}), two({2}), six({6});
    const auto add = [](mr::mean_metric& to, const column<float>& from, cudaStream_t in) {
      to.add(from.view(), {.stream = in});
    };
    std::uint64_t before = launches();
    m.add_together([&] {
      add(means[0], one, s), add(means[1], one, s), add(means[0], two, s);   // the first two, then the third
      CHECK(launches() - before == 1);
    });
    CHECK(launches() - before == 2);
    m.maybe_log(1, f.out);
    before = launches();
    m.add_together([&] {
      for (auto& mean : means) add(mean, six, s);
    });
    CHECK(launches() - before == 2);
    m.add_together([&] {
      add(means[2], two, s);
      add(means[3], one, other);   // after the first one
      m.add_together([&] { add(means[4], one, other); });
      m.maybe_log(2, f.out);
      add(means[0], one, other);
    });
    CHECK_THROWS_AS(m.add_together([&] {
      add(means[5], one, other);
      throw std::runtime_error("the step failed");
    }), std::runtime_error);
    m.maybe_log(3, f.out);
    m.finish(f.out);
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].find("m0") == 1.5);
    CHECK(rows[0].find("m1") == 1);
    CHECK_FALSE(rows[0].find("m2"));
    CHECK(rows[1].find("m0") == 6);
    CHECK(rows[1].find("m2") == 4);
    CHECK(rows[1].find("m3") == 3.5);
    CHECK(rows[1].find("m4") == 3.5);
    CHECK(rows[2].find("m0") == 1);
    CHECK_FALSE(rows[2].find("m5"));
  });
}

TEST_CASE("a captured group counts at each replay; without a device, and on the host, groups call their function") {
  fake_cuda::reset();
  {
    const fake_cuda_test::a_stream s;
    six_metrics six(s);
    six.add();
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    six.all.add_together([&] { six.add(); });
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ok(cudaStreamEndCapture(s, &graph));
    ok(cudaGraphInstantiate(&executable, graph, 0));
    six.all.restart();
    for (int i = 0; i < 3; ++i) ok(cudaGraphLaunch(executable, s));
    const mr::row r = six.all.read_now();
    CHECK(r.find("top1") == 0.5);
    CHECK(r.find("m3").value_or(0) == doctest::Approx(0.3F));
    ok(cudaGraphExecDestroy(executable));
    ok(cudaGraphDestroy(graph));
  }
  mr::metrics without;
  auto loss = without.mean("loss");
  without.add_together([&] { loss.add(3); });
  CHECK(without.read_now().find("loss") == 3);
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  CHECK(fake_cuda::violations().empty());
}

TEST_CASE("a group that cannot be launched is an error, and the next group starts empty") {
  fake_cuda::reset();
  {
    const fake_cuda_test::a_stream s;
    six_metrics six(s);
    fake_cuda::fail("cudaLaunchHostFunc", 1, cudaErrorLaunchOutOfResources);
    CHECK_THROWS_AS(six.all.add_together([&] { six.add(); }), mr::io_error);
    six.all.add_together([&] { six.means[0].add(six.few.view(), {.stream = s}); });
    const mr::row r = six.all.read_now();
    CHECK(r.find("m0").has_value());
    CHECK_FALSE(r.find("m1"));
  }
}

TEST_CASE("a stream for each epoch: it may be destroyed after finish() or read_now(), and its handle may be reused") {
  fake_cuda_test::for_each_world([](fake_cuda::order) {
    const column<float> one({1}), three({3});
    logged f;
    mr::metrics m({.every = 2, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    std::optional<a_stream> previous;   // a new stream reuses the handle of the last one that was destroyed
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      const a_stream s;
      previous.reset();
      loss.add(one.view(), {.stream = s});
      m.maybe_log(2 * epoch, f.out);
      loss.add(three.view(), {.stream = s});
      if (epoch % 2 == 0) {
        m.finish(f.out);
      } else {
        CHECK(m.read_now().find("loss") == 2);
        m.restart();
      }
      if (epoch % 3 == 0) previous.emplace();
    }
    loss.add(one.view(), {.stream = previous ? previous->handle : nullptr});
    CHECK(m.read_now().find("loss") == 1);
  });
}

TEST_CASE("a stream whose adds were captured is ordered before adds in other streams, also after read_now()") {
  fake_cuda::reset({.when = fake_cuda::order::late});
  {
    const a_stream s, other;
    const column<float> one({1}), three({3});
    mr::metrics m({.device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    loss.add(one.view(), {.stream = s});
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ok(cudaStreamEndCapture(s, &graph));
    ok(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(m.read_now().values.empty());
    ok(cudaGraphLaunch(executable, s));
    loss.add(three.view(), {.stream = other});
    CHECK(m.read_now().find("loss") == 2);
    ok(cudaGraphExecDestroy(executable));
    ok(cudaGraphDestroy(graph));
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  CHECK(fake_cuda::violations().empty());
}
