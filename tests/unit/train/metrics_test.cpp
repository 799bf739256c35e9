#include <millrace/base/random.hpp>
#include <millrace/train/metrics.hpp>
#include <millrace/train/status_line.hpp>

#include "../../eventually.hpp"
#include "fixtures.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

namespace mr = millrace;
using output = mr::status_line_options::output;

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

namespace {

/// The output of a status line, and the variable that its colors depend on.
struct screen {
  explicit screen(bool color) {
    if (const char* old = std::getenv("NO_COLOR")) before = old;
    color ? ::unsetenv("NO_COLOR") : ::setenv("NO_COLOR", "1", 1);
    file = ::open((folder / "screen").c_str(), O_RDWR | O_CREAT, 0600);
  }
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;
  ~screen() {
    before.empty() ? ::unsetenv("NO_COLOR") : ::setenv("NO_COLOR", before.c_str(), 1);
    ::close(file);
  }
  std::string text() const { return content_of(folder / "screen"); }

  temporary_folder folder;
  std::string before;
  int file = -1;
};

constexpr std::int64_t ms = 1'000'000;

mr::row row_of(std::uint64_t step, double loss) { return {.step = step, .epoch = 3, .values = {{"loss", loss}}}; }

}  // namespace

TEST_CASE("without a terminal there are plain lines, the first at once, then at a lower rate, and the last state") {
  screen s(false);
  mr::status_line line({.file = s.file, .plain_interval = std::chrono::seconds(1)});
  for (int i = 0; i < 25; ++i) {
    line.write(row_of(static_cast<std::uint64_t>(i), 0.5));
    line.tick({.steady_ns = i * 100 * ms});
  }
  CHECK(s.text() == "epoch 3  step 0  loss 0.5\nepoch 3  step 10  loss 0.5\nepoch 3  step 20  loss 0.5\n");
  line.close();
  CHECK(s.text().ends_with("step 20  loss 0.5\nepoch 3  step 24  loss 0.5\n"));
  const auto size = s.text().size();
  line.close();
  CHECK(s.text().size() == size);
}

TEST_CASE("a terminal's line is redrawn in place, at most once in redraw_ns, and kept at the end") {
  screen s(false);
  mr::status_line line({.file = s.file, .kind = output::terminal, .columns = 60});
  for (int i = 0; i < 25; ++i) {
    line.write(row_of(static_cast<std::uint64_t>(i), 0.25));
    line.tick({.steady_ns = i * 10 * ms});
  }
  line.close();
  CHECK(s.text() == "\repoch 3  step 0  loss 0.25\x1b[K\repoch 3  step 10  loss 0.25\x1b[K"
                    "\repoch 3  step 20  loss 0.25\x1b[K\repoch 3  step 24  loss 0.25\x1b[K\n");
}

TEST_CASE("in a narrow terminal complete cells are dropped, the least important first, and no number is cut") {
  using unit = mr::quantity_unit;
  const mr::row r{.step = 123456,
                  .epoch = 3,
                  .values = {{"loss", 0.4512}, {"learning_rate", 0.001}, {"samples_per_s", 3120.4, unit::per_second},
                             {"accuracy", 0.5, unit::share}, {"data_wait", 0.004, unit::share}}};
  const std::string all =
      "epoch 3  step 123456  loss 0.4512  learning_rate 0.001  samples/s 3120  accuracy 50.0%  data_wait 0.4%";
  const std::vector<std::string> lines = {
      all, "epoch 3  step 123456  loss 0.4512  learning_rate 0.001  samples/s 3120  data_wait 0.4%",
      "epoch 3  step 123456  loss 0.4512  samples/s 3120  data_wait 0.4%",
      "epoch 3  step 123456  samples/s 3120  data_wait 0.4%", "step 123456  samples/s 3120  data_wait 0.4%",
      "step 123456  samples/s 3120", "step 123456", ""};
  for (const bool color : {false, true})
    for (std::size_t columns = 2; columns <= all.size() + 2; ++columns) {   // the last column is never written to
      CAPTURE(columns);
      screen s(color);
      mr::status_line line({.file = s.file, .kind = output::terminal, .columns = columns});
      line.write(r);
      line.tick({});
      std::string visible;
      const std::string text = s.text();
      for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\x1b') while (text[i] != 'm' && text[i] != 'K') ++i;
        else if (text[i] != '\r') visible += text[i];
      }
      const auto longest =
          std::find_if(lines.begin(), lines.end(), [&](const std::string& l) { return l.size() < columns; });
      REQUIRE(visible == *longest);
      REQUIRE((text.find("\x1b[2m") != std::string::npos) == (color && !visible.empty()));
    }
}

TEST_CASE("a count of one interval is not mistaken for a total, because its rate is shown") {
  screen s(false);
  mr::status_line line({.file = s.file, .kind = output::plain});
  fake_clock clock;
  mr::metrics metrics({.every = 1, .now = clock});
  for (std::uint64_t step = 1; step <= 2; ++step) {
    metrics.count("samples", 480);
    clock.advance(2'000 * ms);
    line.write(metrics.read_now());
    metrics.restart();
  }
  line.write({.step = 2, .values = {{"files", 12, mr::quantity_unit::count}}});   // a user's count, without a rate
  line.close();
  CHECK(s.text() == "step 2  samples/s 240  files 12\n");
}

TEST_CASE("numbers are printed by their unit, and names keep their latest value and their place") {
  screen s(false);
  mr::status_line line({.file = s.file, .kind = output::plain});
  line.write({.step = 1, .values = {{"loss", 1}, {"samples_per_s", 3120.4, mr::quantity_unit::per_second}}});
  line.write({.step = 2,
              .values = {{"top1", 0.8125, mr::quantity_unit::share}, {"loss", 0.123456},
                         {"tokens", 1e6, mr::quantity_unit::count}},
              .nonfinite = 4});
  line.close();
  CHECK(s.text() == "step 2  loss 0.1235  samples/s 3120  top1 81.2%  tokens 1000000  nonfinite 4\n");
}

TEST_CASE("a message is printed above the line, and cannot move the cursor") {
  screen s(false);
  mr::status_line line({.file = s.file, .kind = output::terminal, .columns = 60});
  line.write(row_of(1, 0.5));
  line.tick({.steady_ns = 0});
  line.write({.step = 1, .message = "rate \x1b[2J lowered"});
  line.tick({.steady_ns = 200 * ms});
  line.close();
  const std::string redrawn = "\repoch 3  step 1  loss 0.5\x1b[K";
  CHECK(s.text() == redrawn + "\r\x1b[Krate \\x1b[2J lowered\n" + redrawn + "\n");
}

TEST_CASE("a closed pipe is an error of the sink") {
  mr::status_line line({.file = -1, .kind = output::plain});
  line.write(row_of(1, 0.5));
  CHECK_THROWS_AS(line.tick({}), mr::io_error);
}
