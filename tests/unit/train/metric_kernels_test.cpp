#include "device_fixtures.hpp"

#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace mr = millrace;
using fake_cuda_test::a_stream;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

template <class T>
std::vector<T> random_numbers(std::size_t count, mr::rng& d) {
  std::vector<T> values(count);
  for (auto& v : values) v = mr::detail::half_element<T>(static_cast<float>(d.uniform(-4, 4)));
  return values;
}

}  // namespace

TEST_CASE_TEMPLATE("means of device values equal a double-precision sum", T, float, mr::f16, mr::bf16) {
  mr::rng d({.seed = 11});
  fake_cuda::reset();
  {
    const a_stream s;
    for (const std::size_t count : {1U, 2U, 7U, 8U, 31U, 255U, 256U, 1'000U, 4'096U, 5'003U, 20'001U})
      for (const std::size_t shift : {0U, 1U, 5U}) {
        const auto values = random_numbers<T>(count, d);
        const column<T> on_gpu(values, shift);
        mr::metrics m({.device = mr::cuda_metric_sums()});
        auto loss = m.mean("loss");
        loss.add(on_gpu.view(), {.weight = 3, .stream = s.handle});
        loss.add(2, 5);
        double sum = 2 * 5, weight = 5;
        for (const T v : values) {
          sum += 3 * static_cast<double>(mr::detail::to_float(v));
          weight += 3;
        }
        CHECK(*m.read_now().find("loss") == doctest::Approx(sum / weight).epsilon(1e-12));
      }
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  CHECK(fake_cuda::violations().empty());
}

TEST_CASE_TEMPLATE("ranks on the device are those of the host", T, float, mr::f16, mr::bf16) {
  mr::rng d({.seed = 12});
  fake_cuda::reset();
  {
    const a_stream s;
    for (int round = 0; round < 60; ++round) {
      const bool many = round == 1;   // more rows than blocks
      const std::size_t rows = many ? 5'000 : d.below(40), classes = 1 + d.below(many ? 5 : round % 3 ? 20 : 700);
      std::vector<T> logits(rows * classes);
      for (auto& l : logits) l = mr::detail::half_element<T>(static_cast<float>(d.between(-3, 3)));   // many ties
      if (rows > 0 && round % 4 == 0) {
        if constexpr (std::is_same_v<T, float>) logits[d.below(logits.size())] = not_a_number;
        else logits[d.below(logits.size())].bits = 0x7fff;   // NaN in both formats
      }
      std::vector<std::int32_t> labels(rows);
      for (auto& l : labels) l = static_cast<std::int32_t>(d.below(classes));
      const std::vector<std::int64_t> wide(labels.begin(), labels.end());
      const column<T> logits_on_gpu(logits, d.below(9));
      const column<std::int32_t> labels_on_gpu(labels);
      const column<std::int64_t> wide_on_gpu(wide);

      mr::metrics m({.device = mr::cuda_metric_sums()});
      auto narrow_top = m.accuracy("narrow", {.top_k = 3}), wide_top = m.accuracy("wide", {.top_k = 3});
      narrow_top.add(logits_on_gpu.rows(rows), labels_on_gpu.view(), {.stream = s.handle});
      wide_top.add(logits_on_gpu.rows(rows), wide_on_gpu.view(), {.stream = s.handle});
      mr::metrics expected;
      expected.accuracy("narrow", {.top_k = 3})
          .add(mr::tensor_view<const T, 2>{.data = logits.data(), .shape = {rows, classes}},
               mr::tensor_view<const std::int64_t, 1>{.data = wide.data(), .shape = {rows}});
      const mr::row got = m.read_now(), host_row = expected.read_now();
      for (const char* name : {"narrow1", "narrow3"}) CHECK(got.find(name) == host_row.find(name));
      CHECK(got.find("wide1") == host_row.find("narrow1"));
      CHECK(got.find("wide3") == host_row.find("narrow3"));
      CHECK(got.nonfinite == 2 * host_row.nonfinite);
    }
  }
}

TEST_CASE("each metric has its own sums, up to the last that there is room for") {
  fake_cuda::reset();
  {
    const a_stream s;
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums({.max_metrics = 70})});
    std::vector<mr::mean_metric> means;
    for (int i = 0; i < 70; ++i) means.push_back(m.mean("m" + std::to_string(i)));
    for (int round = 1; round <= 2; ++round) {
      for (std::size_t i = 0; i < means.size(); ++i)
        means[i].add(column<float>({static_cast<float>(i) * 2}).view(), {.stream = s.handle});
      m.maybe_log(static_cast<std::uint64_t>(round), f.out);
    }
    m.finish(f.out);
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 2);
    for (const auto& r : rows)
      for (int i = 0; i < 70; ++i) CHECK(r.find("m" + std::to_string(i)).value_or(-1) == 2.0 * i);
  }
}

TEST_CASE("numbers that are not finite are counted on the device and excluded") {
  fake_cuda::reset();
  {
    const a_stream s;
    const column<float> values({1, not_a_number, 3, infinite, -infinite});
    const column<float> large({3e38F});
    mr::metrics m({.device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    loss.add(values.view(), {.stream = s.handle});
    loss.add(large.view(), {.weight = 1e300, .stream = s.handle});
    const mr::row r = m.read_now();
    CHECK(r.find("loss") == 2);
    CHECK(r.nonfinite == 4);
    m.restart();
    CHECK(m.read_now().values.empty());
  }
}

TEST_CASE("the largest addend is the largest f32 whose product with the weight is finite") {
  CHECK(mr::detail::largest_metric_addend(0) == std::numeric_limits<float>::max());
  for (const double weight : {1e270, -1e299, 1e300, 1.1e300, -1.3e300, 1.7e300, 3e307, 1e308}) {
    CAPTURE(weight);
    const float largest = mr::detail::largest_metric_addend(weight);
    CHECK(std::isfinite(static_cast<double>(largest) * weight));
    CHECK_FALSE(std::isfinite(static_cast<double>(std::nextafter(largest, infinite)) * weight));
  }
}

TEST_CASE("products that are not finite are excluded on the device as on the host") {
  fake_cuda::reset();
  {
    const a_stream s;
    const std::vector<float> values = {0, -1, 2e8F, 3e38F, -3e38F, not_a_number};
    const column<float> on_gpu(values);
    for (const double weight : {0.0, 1.0, -2.0, 1e300, static_cast<double>(infinite)}) {
      CAPTURE(weight);
      mr::metrics m({.device = mr::cuda_metric_sums()}), expected;
      m.mean("loss").add(on_gpu.view(), {.weight = weight, .stream = s.handle});
      expected.mean("loss").add(mr::tensor_view<const float, 1>{.data = values.data(), .shape = {values.size()}},
                                {.weight = weight});
      const mr::row got = m.read_now(), host_row = expected.read_now();
      CHECK(got.nonfinite == host_row.nonfinite);
      REQUIRE(got.find("loss").has_value() == host_row.find("loss").has_value());
      const double mean = got.find("loss").value_or(0), host_mean = host_row.find("loss").value_or(0);
      CHECK(std::isnan(mean) == std::isnan(host_mean));
      if (!std::isnan(mean)) CHECK(mean == doctest::Approx(host_mean).epsilon(1e-12));
    }
  }
}

TEST_CASE_TEMPLATE("threads of the kernels add up the bits of the loops and do not race", T, float, mr::f16, mr::bf16) {
  mr::rng d({.seed = 13});
  const auto values = random_numbers<T>(1'003, d);
  mr::metric_totals in_loops, in_threads;
  mr::metric_totals loop_parts[2], thread_parts[2];
  run_in_loops(mr::detail::sum_values<T>{values.data() + 3, 1'000, 0.3, 9, loop_parts}, 2);
  run_in_threads(mr::detail::sum_values<T>{values.data() + 3, 1'000, 0.3, 9, thread_parts}, 2);
  CHECK(std::memcmp(thread_parts, loop_parts, sizeof(loop_parts)) == 0);
  run_in_loops(mr::detail::merge_metric_parts{loop_parts, 2, &in_loops}, 1);
  run_in_threads(mr::detail::merge_metric_parts{loop_parts, 2, &in_threads}, 1);
  CHECK(std::memcmp(&in_threads, &in_loops, sizeof(in_loops)) == 0);
  const std::vector<std::int32_t> labels = {2, 0, -1, 16, 17, 5, 9};   // more rows than blocks
  in_loops = in_threads = {};
  run_in_loops(mr::detail::metric_rank_rows<T, std::int32_t>{values.data(), labels.data(), 7, 17, 3, &in_loops}, 4);
  run_in_threads(mr::detail::metric_rank_rows<T, std::int32_t>{values.data(), labels.data(), 7, 17, 3, &in_threads}, 4);
  CHECK(std::memcmp(&in_threads, &in_loops, sizeof(in_loops)) == 0);
  CHECK(in_loops.count == 5);
  CHECK(in_loops.bad_labels == 2);
}

namespace {

/// Adds of random kinds and sizes to different metrics, with their data.
template <class T>
struct random_adds {
  static constexpr std::size_t classes = 11;
  std::vector<std::vector<T>> numbers;
  std::vector<std::vector<std::int64_t>> wide;
  std::vector<std::vector<std::int32_t>> narrow;
  std::vector<mr::metric_totals> parts = std::vector<mr::metric_totals>(8 * mr::detail::merge_metric_parts::threads);

  random_adds(std::size_t adds, mr::rng& d) {
    for (std::size_t i = 0; i < adds; ++i) {
      const std::size_t rows = 1 + d.below(30);
      numbers.push_back(random_numbers<T>(i % 2 == 0 ? 1 + d.below(9'000) : rows * classes, d));
      wide.emplace_back(rows);
      for (auto& label : wide.back()) label = d.between(-1, classes);   // some are not a class
      narrow.emplace_back(wide.back().begin(), wide.back().end());
    }
  }

  mr::detail::grouped_add add(std::size_t i, mr::metric_totals* to) {
    using work = mr::detail::grouped_add::work;
    constexpr auto kind = mr::detail::kind_of<T>;
    if (i % 2 == 1)
      return {.data = numbers[i].data(),
              .labels = i % 4 == 1 ? static_cast<const void*>(wide[i].data()) : narrow[i].data(),
              .count = wide[i].size(), .classes = classes, .top_k = 3, .to = to,
              .blocks = static_cast<unsigned>(wide[i].size() + 1) / 2, .kind = kind,
              .what = i % 4 == 1 ? work::wide_ranks : work::ranks};
    const unsigned blocks = mr::detail::sum_values_blocks(numbers[i].size());
    return {.data = numbers[i].data(), .count = numbers[i].size(), .weight = 0.3, .to = to,
            .parts = blocks > 1 ? parts.data() + i * mr::detail::merge_metric_parts::threads : nullptr,
            .limit = mr::detail::largest_metric_addend(0.3), .blocks = blocks, .kind = kind};
  }

  /// The totals by one kernel for each add.
  std::vector<mr::metric_totals> separately() {
    std::vector<mr::metric_totals> all(numbers.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto a = add(i, &all[i]);
      const T* const data = numbers[i].data();
      if (i % 4 == 1)
        run_in_loops(mr::detail::metric_rank_rows<T, std::int64_t>{data, wide[i].data(), a.count, classes, 3, a.to},
                     a.blocks);
      else if (i % 4 == 3)
        run_in_loops(mr::detail::metric_rank_rows<T, std::int32_t>{data, narrow[i].data(), a.count, classes, 3, a.to},
                     a.blocks);
      else
        run_in_loops(mr::detail::sum_values<T>{data, a.count, a.weight, a.limit, a.parts ? a.parts : a.to}, a.blocks);
      if (a.parts) run_in_loops(mr::detail::merge_metric_parts{a.parts, a.blocks, a.to}, 1);
    }
    return all;
  }

  /// The totals by one kernel for all adds, and one for the parts; `run` runs a kernel.
  template <class Run>
  std::vector<mr::metric_totals> together(const Run& run) {
    std::vector<mr::metric_totals> all(numbers.size());
    mr::detail::add_group adds, merges;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& a = adds.adds[adds.count++] = add(i, &all[i]);
      if (a.parts)
        merges.adds[merges.count++] = {.data = a.parts, .count = a.blocks, .to = a.to,
                                       .what = mr::detail::grouped_add::work::parts};
    }
    run(adds, adds.blocks());
    if (merges.count > 0) run(merges, merges.blocks());
    return all;
  }
};

bool same_bits(const std::vector<mr::metric_totals>& a, const std::vector<mr::metric_totals>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(mr::metric_totals)) == 0;
}

}  // namespace

TEST_CASE_TEMPLATE("a group of adds has the bits of separate kernels", T, float, mr::f16, mr::bf16) {
  mr::rng d({.seed = 14});
  for (std::size_t count = 1; count <= mr::detail::add_group::max_adds; ++count)
    for (int round = 0; round < 3; ++round) {
      random_adds<T> adds(count, d);
      CHECK(same_bits(adds.together([](const auto& body, unsigned blocks) { run_in_loops(body, blocks); }),
                      adds.separately()));
    }
}

TEST_CASE("a group's threads have the bits of its loops and do not race") {
  mr::rng d({.seed = 15});
  random_adds<mr::f16> adds(4, d);
  adds.numbers[0] = random_numbers<mr::f16>(5'000, d);   // two blocks
  const auto expected = adds.separately();
  CHECK(same_bits(adds.together([](const auto& body, unsigned blocks) { run_in_threads(body, blocks); }), expected));
}
