#include "fixtures.hpp"

#include <millrace/train/metrics.hpp>
#include <millrace/train/status_line.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <vector>

namespace mr = millrace;
using output = mr::status_line_options::output;

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
