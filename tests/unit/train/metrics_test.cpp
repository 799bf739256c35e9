#include "../../eventually.hpp"
#include "fixtures.hpp"

#include <millrace/base/random.hpp>
#include <millrace/train/metrics.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mr = millrace;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

mr::tensor_view<const float, 2> logits_view(const std::vector<float>& v, std::size_t rows) {
  return {.data = v.data(), .shape = {rows, v.size() / rows}};
}
template <class Label>
mr::tensor_view<const Label, 1> labels_view(const std::vector<Label>& v) {
  return {.data = v.data(), .shape = {v.size()}};
}

}  // namespace

TEST_CASE("a row is written every N steps, with the sums of exactly these steps") {
  const auto memory = std::make_shared<remembering_sink::shared>();
  fake_clock clock;
  mr::log out({.now = clock}, remembering_sink{memory});
  mr::metrics m({.every = 4, .now = clock});
  auto loss = m.mean("loss");
  for (std::uint64_t step = 100; step < 110; ++step) {
    loss.add(static_cast<double>(step), step % 2 ? 3 : 1);
    m.count("samples", 8);
    m.spent_ns("data_wait", 10'000'000);
    clock.advance(100'000'000);
    CHECK(m.maybe_log({.step = step, .epoch = step / 105}, out) == (step == 103 || step == 107));
  }
  m.finish(out);
  m.finish(out);   // nothing new: no row
  out.close();
  REQUIRE(memory->rows.size() == 3);
  const auto& first = memory->rows[0];
  CHECK(first.step == 103);
  CHECK(first.epoch == 0);
  CHECK(first.unix_ns == fake_clock::unix_start_ns + 400'000'000);
  CHECK(first.find("loss") == (100.0 + 3 * 101 + 102 + 3 * 103) / 8);
  CHECK(first.find("samples") == 32);
  CHECK(*first.find("samples_per_s") == doctest::Approx(80));
  CHECK(*first.find("data_wait") == doctest::Approx(0.1));
  CHECK(memory->rows[1].step == 107);
  CHECK(memory->rows[1].epoch == 1);
  CHECK(memory->rows[1].find("loss") == (104.0 + 3 * 105 + 106 + 3 * 107) / 8);
  CHECK(memory->rows[2].step == 109);
  CHECK(memory->rows[2].find("samples") == 16);
}

TEST_CASE("a full log delays the row, and the mean stays exact over the longer window") {
  const auto memory = std::make_shared<remembering_sink::shared>();
  mr::log out({.queue_rows = 1, .hold = {}}, remembering_sink{memory});
  mr::metrics m({.every = 2});
  auto loss = m.mean("loss");
  std::uint64_t step = 0;
  const auto run_to = [&](std::uint64_t end) {
    for (; step < end; ++step) {
      loss.add(static_cast<double>(step));
      m.count("samples", 1);
      m.maybe_log(step, out);
    }
  };
  {
    const std::lock_guard hang(memory->gate);
    out.push({.step = 0});
    REQUIRE(eventually([&] { return memory->entered > 0; }));
    out.push({.step = 0});   // and the queue is full
    run_to(7);
    CHECK(m.log_skipped() == 3);
  }
  CHECK(out.flush());
  run_to(8);
  run_to(9);
  m.finish(out);
  out.close();
  REQUIRE(memory->rows.size() == 4);
  CHECK(memory->rows[2].step == 7);
  CHECK(memory->rows[2].find("loss") == 3.5);
  CHECK(memory->rows[2].find("samples") == 8);
  CHECK(memory->rows[3].find("samples") == 1);
}

TEST_CASE("values that are not finite are counted and excluded from the mean") {
  mr::metrics m;
  auto loss = m.mean("loss");
  loss.add(1, 2);
  loss.add(not_a_number);
  loss.add(infinite);
  loss.add(-infinite, 5);
  loss.add(1e308, 100);
  loss.add(4);
  const mr::row r = m.read_now();
  CHECK(r.find("loss") == 2);
  CHECK(r.nonfinite == 4);
  m.restart();
  CHECK(m.read_now().values.empty());
  loss.add(not_a_number);
  CHECK(std::isnan(*m.read_now().find("loss")));
}

TEST_CASE("a view adds each of its values, and one of GPU memory is refused") {
  mr::metrics m;
  auto loss = m.mean("loss");
  const std::vector<float> values{1, 2, 6};
  loss.add(labels_view(values), {.weight = 10});
  loss.add(9, 30);
  CHECK(m.read_now().find("loss") == 6);
  CHECK_THROWS_AS(loss.add({.data = values.data(), .shape = {3}, .memory = mr::memory_kind::device, .name = "loss"}),
                  mr::setup_error);
}

TEST_CASE("the target's rank is its place in a stable sort by falling logit") {
  mr::rng random({.seed = 3});
  for (int round = 0; round < 2'000; ++round) {
    std::vector<float> logits(1 + random.below(12));
    for (auto& l : logits) l = static_cast<float>(random.between(-2, 2));   // many ties
    if (round % 7 == 0) logits[random.below(logits.size())] = infinite;
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
    const std::size_t label = random.below(logits.size());
    const auto place = std::find(order.begin(), order.end(), label) - order.begin();
    REQUIRE(mr::detail::target_rank(logits, label) == static_cast<std::size_t>(place));
    logits[random.below(logits.size())] = not_a_number;
    REQUIRE(mr::detail::target_rank(logits, label) == mr::detail::unranked);
  }
}

TEST_CASE("accuracy counts top-1 and top-k, for both kinds of labels") {
  const std::vector<float> logits{5, 4, 3, 2,            // label 0: rank 0
                                  5, 4, 3, 2,            // label 2: rank 2
                                  1, 1, 1, 1,            // label 1: rank 1, by the tie rule
                                  0, not_a_number, 9, 0};   // label 2: no rank
  mr::metrics m;
  auto top = m.accuracy("top", {.top_k = 2});
  auto plain = m.accuracy("accuracy");
  top.add(logits_view(logits, 4), labels_view(std::vector<std::int32_t>{0, 2, 1, 2}));
  plain.add(logits_view(logits, 4), labels_view(std::vector<std::int64_t>{0, 2, 1, 2}));
  const mr::row r = m.read_now();
  CHECK(r.find("top1") == 0.25);
  CHECK(r.find("top2") == 0.5);
  CHECK(r.find("accuracy") == 0.25);
  CHECK(r.nonfinite == 2);
}

TEST_CASE("a label that is not a class, or shapes that differ, are errors and change nothing") {
  const std::vector<float> logits(8);
  mr::metrics m;
  auto top = m.accuracy("top1");
  CHECK_THROWS_AS(top.add(logits_view(logits, 2), labels_view(std::vector<std::int32_t>{0, 4})), mr::data_error);
  CHECK_THROWS_AS(top.add(logits_view(logits, 2), labels_view(std::vector<std::int64_t>{0, -1})), mr::data_error);
  CHECK_THROWS_AS(top.add(logits_view(logits, 2), labels_view(std::vector<std::int32_t>{0, 1, 2})), mr::setup_error);
  CHECK(m.read_now().values.empty());
}

TEST_CASE("names are unique over kinds, and those of a row's own fields are reserved") {
  mr::metrics m;
  m.mean("loss").add(1);
  m.mean("loss").add(3);
  CHECK(m.read_now().find("loss") == 2);
  CHECK_THROWS_AS(m.count("loss", 1), mr::setup_error);
  CHECK_THROWS_AS(m.mean("step"), mr::setup_error);
  CHECK_THROWS_AS(m.accuracy("top", {.top_k = 0}), mr::setup_error);
  CHECK_THROWS_AS(mr::metrics({.every = 0}), mr::setup_error);
}
