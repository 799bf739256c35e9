// The contract of the kernels and of metrics on a device. Compiled for the host with the fake runtime, and by nvcc
// (kernels_contract_test.cu) for a GPU.
#ifndef __CUDACC__
#include "../../kernels_on_host.hpp"
#endif
#include "contract.hpp"
#include "row_list.hpp"
#include "wrapped_calls.hpp"

#include <millrace/base/random.hpp>
#include <millrace/device/mix_rows.cuh>
#include <millrace/device/mix_rows.hpp>
#include <millrace/device/normalize.cuh>
#include <millrace/device/normalize.hpp>
#include <millrace/train/metrics.cuh>
#include <millrace/train/metrics.hpp>

namespace mr = millrace;
using contract::ok;

namespace {

mr::stream_view stream_of(const contract::stream& s) { return static_cast<cudaStream_t>(s); }

/// Numbers in device memory, `shift` elements past an aligned address, with 64 bytes of 0x5a before and after.
template <class T>
class guarded {
 public:
  guarded(const std::vector<T>& values, std::size_t shift)
      : bytes_(guard + (shift + values.size()) * sizeof(T) + guard, 0x5a), begin_(guard + shift * sizeof(T)) {
    if (!values.empty()) std::memcpy(bytes_.data() + begin_, values.data(), values.size() * sizeof(T));
    memory_ = contract::make_device(bytes_.size());
    ok(cudaMemcpy(memory_.get(), bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice));
    ok(cudaDeviceSynchronize());   // a copy from pageable memory may return before it completes
  }
  T* data() const { return reinterpret_cast<T*>(memory_.get() + begin_); }
  /// Whether the device memory contains these values, with an unchanged margin.
  bool contains(const std::vector<T>& values) const {
    auto expected = bytes_;
    if (!values.empty()) std::memcpy(expected.data() + begin_, values.data(), values.size() * sizeof(T));
    return contract::read_back(memory_.get(), expected.size()) == expected;
  }

 private:
  static constexpr std::size_t guard = 64;
  std::vector<unsigned char> bytes_;
  std::size_t begin_;
  contract::device_memory memory_;
};

template <class T>
void normalizes(std::array<std::size_t, 4> shape, bool planar, std::size_t shift, mr::rng& d) {
  const std::size_t count = shape[0] * shape[1] * shape[2] * shape[3];
  std::vector<std::uint8_t> in(count);
  for (auto& v : in) v = static_cast<std::uint8_t>(d.below(256));
  mr::normalize_options o{.layout = planar ? mr::image_layout::nchw : mr::image_layout::nhwc};
  for (std::size_t c = 0; c < 4; ++c) {
    o.mean[c] = d.uniform(0.3, 0.6);
    o.std[c] = d.uniform(0.1, 0.4);
  }
  std::vector<T> expected(count);
  mr::tensor_view<const std::uint8_t, 4> pixels{.data = in.data(), .shape = shape};
  mr::tensor_view<T, 4> numbers{.data = expected.data(),
                                .shape = planar ? std::array{shape[0], shape[3], shape[1], shape[2]} : shape};
  mr::normalize(pixels, numbers, o);
  const guarded<std::uint8_t> from(in, shift);
  const guarded<T> to(std::vector<T>(count), shift);
  pixels.data = from.data();
  numbers.data = to.data();
  pixels.memory = numbers.memory = mr::memory_kind::device;
  const contract::stream s;
  mr::normalize(pixels, numbers, o, stream_of(s));
  s.synchronize();
  REQUIRE(to.contains(expected));
}

/// Mixes a batch of random rows by both versions of mix_rows: pairs by mixup and cutmix, rows alone, and copies.
template <class T>
void mixes_rows(std::array<std::size_t, 4> shape, bool planar, std::size_t shift, mr::rng& d) {
  std::vector<T> rows(shape[0] * shape[1] * shape[2] * shape[3]);
  for (T& v : rows) {
    if constexpr (std::is_same_v<T, std::uint8_t>) v = static_cast<T>(d.below(256));
    else v = mr::detail::half_element<T>(static_cast<float>(d.uniform(-3, 3)));
  }
  const std::size_t height = shape[planar ? 2 : 1], width = shape[planar ? 3 : 2];
  std::vector<mr::row_mix> mixes(shape[0]);
  for (std::size_t i = 0; i + 2 < mixes.size(); i += 3) {   // the third is a copy of the first or the second
    mr::row_mix how;
    if (d.chance(0.5)) {
      how.weight = static_cast<std::uint32_t>(2 * d.below(32'769));
    } else {
      how.left = static_cast<std::uint16_t>(d.below(width));
      how.right = static_cast<std::uint16_t>(how.left + d.below(width - how.left + 1));
      how.top = static_cast<std::uint16_t>(d.below(height));
      how.bottom = static_cast<std::uint16_t>(how.top + d.below(height - how.top + 1));
    }
    mixes[i] = mixes[i + 1] = how;
    mixes[i].partner = static_cast<std::int32_t>(i + 1);
    mixes[i + 1].partner = static_cast<std::int32_t>(i);
    mixes[i + d.below(2)].next_copy = static_cast<std::int32_t>(i + 2);
    const std::size_t original = mixes[i].next_copy == mr::row_mix::none ? i + 1 : i, row = rows.size() / shape[0];
    std::copy_n(rows.data() + original * row, row, rows.data() + (i + 2) * row);
  }
  const guarded<T> there(rows, shift);
  const guarded<mr::row_mix> mixes_there(mixes, 0);
  const mr::image_layout layout = planar ? mr::image_layout::nchw : mr::image_layout::nhwc;
  const contract::stream s;
  mr::mix_rows(mr::tensor_view<T, 4>{.data = there.data(), .shape = shape, .memory = mr::memory_kind::device},
               {.data = mixes_there.data(), .shape = {mixes.size()}, .memory = mr::memory_kind::device}, stream_of(s),
               layout);
  s.synchronize();
  mr::mix_rows(mr::tensor_view<T, 4>{.data = rows.data(), .shape = shape},
               {.data = mixes.data(), .shape = {mixes.size()}}, layout);
  REQUIRE(there.contains(rows));
}

/// The mean of 1, 2, 4, ... identifies its terms.
mr::tensor_view<const float, 1> one_of(const guarded<float>& values, std::size_t i) {
  return {.data = values.data() + i, .shape = {1}, .memory = mr::memory_kind::device};
}
std::vector<float> powers(std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<float>(1 << i);
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE("kernels: normalize writes the bits of the host's loop and nothing else", T, float, mr::f16,
                   mr::bf16) {
  contract::start();
  mr::rng d({.seed = 1});
  for (const bool planar : {false, true}) {
    for (std::size_t channels = 1; channels <= 4; ++channels)
      for (const std::size_t width : {1, 7, 16, 31, 40})
        for (const std::size_t shift : {0, 1, 8}) normalizes<T>({2, 3, width, channels}, planar, shift, d);
    normalizes<T>({9, 65, 64, 3}, planar, 0, d);
    normalizes<T>({9, 65, 63, 3}, planar, 0, d);
  }
}

TEST_CASE_TEMPLATE("kernels: mix_rows writes the bits of the host's loop and nothing else", T, std::uint8_t,
                   float, mr::f16, mr::bf16) {
  contract::start();
  mr::rng d({.seed = 4});
  for (const bool planar : {false, true}) {
    for (int round = 0; round < 30; ++round) {
      const std::size_t a = 1 + d.below(20), b = 1 + d.below(20), c = 1 + d.below(20);
      mixes_rows<T>({2 + d.below(11), a, b, c}, planar, d.below(9), d);
    }
    if (planar) mixes_rows<T>({9, 3, 64, 80}, planar, 0, d);
    else mixes_rows<T>({9, 64, 80, 3}, planar, 0, d);
  }
}

TEST_CASE("kernels: dense labels have the bits of the host's") {
  contract::start();
  mr::rng d({.seed = 5});
  const contract::stream s;
  for (const std::size_t classes : {1, 10, 1'000}) {
    std::vector<std::int64_t> a(33), b(33);
    std::vector<float> lambda(33);
    for (std::size_t i = 0; i < 33; ++i) {
      a[i] = static_cast<std::int64_t>(d.below(classes));
      b[i] = static_cast<std::int64_t>(d.below(classes));
      lambda[i] = static_cast<float>(d.uniform());
    }
    const guarded<std::int64_t> a_there(a, 0), b_there(b, 0);
    const guarded<float> lambda_there(lambda, 0), result(std::vector<float>(33 * classes), 3);
    const auto labels = [](const std::int64_t* x, const std::int64_t* y, const float* l, mr::memory_kind where) {
      return mr::mixed_labels<std::int64_t>{.label_a = {.data = x, .shape = {33}, .memory = where},
                                            .label_b = {.data = y, .shape = {33}, .memory = where},
                                            .lambda = {.data = l, .shape = {33}, .memory = where}};
    };
    std::vector<float> expected(33 * classes);
    mr::dense_labels(labels(a.data(), b.data(), lambda.data(), mr::memory_kind::host),
                     {.data = expected.data(), .shape = {33, classes}}, {.smoothing = 0.1});
    mr::dense_labels(labels(a_there.data(), b_there.data(), lambda_there.data(), mr::memory_kind::device),
                     {.data = result.data(), .shape = {33, classes}, .memory = mr::memory_kind::device},
                     {.smoothing = 0.1}, stream_of(s));
    s.synchronize();
    CHECK(result.contains(expected));
  }
}

TEST_CASE_TEMPLATE("kernels: ranks and means are those of the host", T, float, mr::f16, mr::bf16) {
  contract::start();
  mr::rng d({.seed = 2});
  const contract::stream s;
  for (const std::size_t classes : {2, 10, 333, 1'000})
    for (const std::size_t shift : {0, 3}) {
      const std::size_t rows = 3'000 / classes + 1;
      std::vector<T> logits(rows * classes);
      for (auto& l : logits) l = mr::detail::half_element<T>(static_cast<float>(d.between(-40, 40)));
      if constexpr (!std::is_same_v<T, float>) logits.back().bits = 0x7fff;   // NaN
      std::vector<std::int64_t> labels(rows);
      for (auto& l : labels) l = static_cast<std::int64_t>(d.below(classes));
      const auto add_to = [&](mr::metrics& m, const T* values, const std::int64_t* classes_of, mr::memory_kind where) {
        m.accuracy("top", {.top_k = 5})
            .add(mr::tensor_view<const T, 2>{.data = values, .shape = {rows, classes}, .memory = where},
                 mr::tensor_view<const std::int64_t, 1>{.data = classes_of, .shape = {rows}, .memory = where},
                 {.stream = stream_of(s)});
        m.mean("mean").add(mr::tensor_view<const T, 1>{.data = values, .shape = {logits.size()}, .memory = where},
                           {.weight = 3, .stream = stream_of(s)});
      };
      const guarded<T> logits_there(logits, shift);
      const guarded<std::int64_t> labels_there(labels, shift);
      mr::metrics here, there({.device = mr::cuda_metric_sums()}), together({.device = mr::cuda_metric_sums()});
      add_to(here, logits.data(), labels.data(), mr::memory_kind::host);
      add_to(there, logits_there.data(), labels_there.data(), mr::memory_kind::device);
      together.add_together(
          [&] { add_to(together, logits_there.data(), labels_there.data(), mr::memory_kind::device); });
      const mr::row expected = here.read_now(), got = there.read_now(), of_group = together.read_now();
      CHECK(of_group.nonfinite == got.nonfinite);
      for (const char* name : {"top1", "top5", "mean"}) CHECK(of_group.find(name) == got.find(name));
      CHECK(got.find("top1") == expected.find("top1"));
      CHECK(got.find("top5") == expected.find("top5"));
      CHECK(got.find("mean").value_or(-1) == doctest::Approx(*expected.find("mean")).epsilon(1e-12));
      CHECK(got.nonfinite == expected.nonfinite);
    }
}

TEST_CASE("metrics: while the step's stream is blocked, no call waits, and each row contains its own steps") {
  contract::start();
  std::vector<mr::row> rows;
  {
    const contract::stream s;
    const guarded<float> values(powers(12), 0);
    mr::log out(mr::log_options{.hold = {}}, row_list(rows));
    mr::metrics m({.every = 3, .device = mr::cuda_metric_sums({.slots = 2})});
    auto loss = m.mean("loss");
    {
      const contract::stream_block block(s);
      const wrapped_calls before;
      for (std::uint64_t step = 0; step < 12; ++step) {
        loss.add(one_of(values, step), {.stream = stream_of(s)});
        m.maybe_log(step, out);
      }
      const wrapped_calls calls = wrapped_calls() - before;
      CHECK_FALSE(block.is_over());
      CHECK(calls.waits == 0);
      CHECK(calls.resource_calls == 0);
      CHECK(m.log_skipped() == 2);
    }
    m.finish(out);
    out.close();
  }
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].step == 2);
  CHECK(rows[0].find("loss").value_or(-1) == 7 / 3.0);
  CHECK(rows[1].step == 5);
  CHECK(rows[1].find("loss").value_or(-1) == 56 / 3.0);
  CHECK(rows[2].step == 11);
  CHECK(rows[2].find("loss").value_or(-1) == (4'095 - 63) / 6.0);
}

TEST_CASE("metrics: an add in another stream is ordered after earlier ones") {
  contract::start();
  const contract::stream first, second;
  const guarded<float> values(powers(2), 0);
  mr::metrics m({.device = mr::cuda_metric_sums()});
  auto loss = m.mean("loss");
  const contract::event passed;
  contract::stream_block block(first);
  loss.add(one_of(values, 0), {.stream = stream_of(first)});
  loss.add(one_of(values, 1), {.stream = stream_of(second)});
  ok(cudaEventRecord(passed, second));
  contract::pause();
  CHECK_FALSE(passed.reached());
  block.unblock();
  CHECK(m.read_now().find("loss").value_or(-1) == 1.5);
}

TEST_CASE("metrics: a captured add counts at each replay, and a capture outlives maybe_log()") {
  contract::start();
  std::vector<mr::row> rows;
  {
    const contract::stream s;
    const guarded<float> values(powers(3), 0);
    mr::log out(row_list{rows});
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    loss.add(one_of(values, 0), {.stream = stream_of(s)});
    m.maybe_log(1, out);
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    loss.add(one_of(values, 2), {.stream = stream_of(s)});
    CHECK_FALSE(m.maybe_log(2, out));
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(s, &graph));
    cudaGraphExec_t executable = nullptr;
    ok(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) ok(cudaGraphLaunch(executable, s));
    loss.add(0);
    m.maybe_log(3, out);
    m.finish(out);
    ok(cudaGraphExecDestroy(executable));
    ok(cudaGraphDestroy(graph));
    out.close();
  }
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].find("loss").value_or(-1) == 1);
  CHECK(rows[1].find("loss").value_or(-1) == 3);
}
