// Which sample decides the shapes of the columns, when, and the error of a later other shape: the same for any workers.
#include "../../copying_device.hpp"
#include "../../captured_stderr.hpp"
#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/expand.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>

namespace mr = millrace;

namespace {

constexpr std::size_t rows = 8;

struct row {
  std::int32_t number;
  std::vector<float> values;
};

/// A column that is rendered in twos if possible.
struct twin {
  using element = std::int32_t;
  static constexpr std::size_t together = 2;
  std::size_t length = 0;
  std::int32_t number = 0;
  std::array<std::size_t, 1> shape() const { return {length}; }
  void render(std::span<std::int32_t> to) const {
    if (number < 0) throw mr::data_error("a row below 0", "");
    std::fill(to.begin(), to.end(), number);
  }
  static void render_together(std::span<const twin* const> items, std::span<const std::span<std::int32_t>> to,
                              mr::scratch&) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i]->render(to[i]);
      to[i][0] += 1'000;   // it had a partner
    }
  }
};
struct holds_twin {
  twin column;
};

struct ragged_row {
  mr::ragged<float> values;
};

/// Removes the namespace of this file if files of tests are joined: column names contain it.
std::string as_if_alone(std::string text) {
  const std::string within = "::(anonymous namespace)::";
  for (std::size_t at; (at = text.find(within)) != std::string::npos;) {
    const std::size_t begin = text.rfind(' ', at) + 1;
    text.erase(begin, at + within.size() - begin);
  }
  return text;
}

/// The place and the kind of a run's end: "next after 3 batches: data_error millrace: ...".
template <class NewSession>
std::string end_of(const NewSession& new_session) {
  std::size_t batches = 0;
  std::string where = "start";
  const auto located_end = [&](const char* type, const std::exception& e) {
    return where + " after " + std::to_string(batches) + " batches: " + type + " " + as_if_alone(e.what());
  };
  try {
    auto run = new_session();
    where = "next";
    for (auto b = run.next(); b; b = run.next()) ++batches;
    return "the end after " + std::to_string(batches) + " batches";
  } catch (const mr::setup_error& e) {
    return located_end("setup_error", e);
  } catch (const mr::data_error& e) {
    return located_end("data_error", e);
  } catch (const mr::stage_error& e) {
    return located_end("stage_error", e);
  }
}

constexpr int many_workers[] = {0, 1, 4, 16};
const std::string one_shape =
    ". Give every sample the same shape in map(), for example by a crop or resize to a fixed size; use mr::ragged for "
    "variable lengths";

/// From `at` on the shapes differ from those before, and from each other.
std::size_t length_of(int n, int at) { return static_cast<std::size_t>(n < at ? 4 : n == at ? 3 : 5 + n % 3); }

enum class bad { data, foreign, setup };

[[noreturn]] void fail_as(bad kind) {
  if (kind == bad::data) throw mr::data_error("the first is bad", "");
  if (kind == bad::setup) throw mr::setup_error("the first is refused", "");
  throw std::runtime_error("the first threw");
}

/// Twice the same number.
struct doubled {
  using output = int;
  std::size_t max_outputs(const int&) const { return 2; }
  void push(int n, auto& emit) const {
    emit(2 * n);
    emit(2 * n + 1);
  }
};

}  // namespace

TEST_CASE("the first other shape is the error, at any position and with any number of further ones") {
  const auto expected = [](int at, const std::string& column) {
    return "next after " + std::to_string(at / 8) + " batches: data_error millrace: the column " + column +
           " has shape [3] here, but [4] in the first sample of the run (stage batch, position " + std::to_string(at) +
           ")" + one_shape;
  };
  for (const int at : {1, 2, 7, 8, 9, 63, 64, 200, 255})
    for (const int threads : many_workers)
      for (const bool copying : {false, true}) {
        CAPTURE(threads);
        const mr::device device = copying ? copying_device() : mr::host_device();
        CHECK(end_of([&] {
                return mr::session{mr::from(numbers(256)) |
                                       mr::map([=](int n) { return row{n, std::vector<float>(length_of(n, at))}; }) |
                                       mr::batch<&row::number, &row::values>({.size = rows}) |
                                       mr::to_device({.device = device}),
                                   quiet(threads)};
              }) == expected(at, "row::values"));
        CHECK(end_of([&] {
                return mr::session{mr::from(numbers(256)) |
                                       mr::map([=](int n) { return holds_twin{{length_of(n, at), n}}; }) |
                                       mr::batch<&holds_twin::column>({.size = rows}) |
                                       mr::to_device({.device = device}),
                                   quiet(threads)};
              }) == expected(at, "holds_twin::column"));
      }
}

TEST_CASE("an item of another shape is never rendered: it would be written beyond its row") {
  struct counting {
    using element = std::int32_t;
    std::size_t length;
    std::atomic<int>* others;
    std::array<std::size_t, 1> shape() const { return {length}; }
    void render(std::span<std::int32_t> to) const {
      if (length != 4) ++*others;
      std::fill(to.begin(), to.end(), 1);
    }
  };
  struct holds_counting {
    counting column;
  };
  for (const int threads : many_workers) {
    std::atomic<int> others{0};
    CHECK_THROWS_AS(mr::feed(mr::from(numbers(64)) | mr::map([&](int n) {
                               return holds_counting{{n % 8 == 7 ? std::size_t{64} : std::size_t{4}, &others}};
                             }) | mr::batch<&holds_counting::column>({.size = rows}),
                             quiet(threads), [](auto&) {}),
                    mr::data_error);
    CHECK(others == 0);
  }
}

TEST_CASE("a defect of the first sample ends the run before any other sample is created") {
  for (const int threads : many_workers)
    for (const bad kind : {bad::data, bad::foreign, bad::setup}) {
      CAPTURE(threads);
      const std::string expected =
          kind == bad::data    ? "next after 0 batches: data_error millrace: the first is bad (stage map 1, position 0)"
          : kind == bad::setup ? "start after 0 batches: setup_error millrace: the first is refused (stage map 1, "
                                 "position 0)"
                               : "next after 0 batches: stage_error millrace: the first threw (stage map 1, position "
                                 "0). Correct the callable of this stage; cause() returns its exception";
      std::atomic<int> calls{0};
      CHECK(end_of([&] {
              return mr::session{mr::from(numbers(256)) | mr::map([&](int n) {
                                   ++calls;
                                   if (n == 0) fail_as(kind);
                                   return holds_twin{{2, n}};
                                 }) | mr::batch<&holds_twin::column>({.size = rows}),
                                 quiet(threads)};
            }) == expected);
      CHECK(calls == 1);
      // Position 0 is the first that passes; a stage that drops samples has no position to report.
      for (const bool in_filter : {false, true}) {
        const std::string of_filter = "next after 0 batches: data_error millrace: the first is bad (stage expand, "
                                      "position 0)";
        CHECK(end_of([&] {
                return mr::session{mr::from(numbers(256)) | mr::filter([&](const int& n) {
                                     if (n == 4 && in_filter) fail_as(bad::data);
                                     return n > 3;
                                   }) |
                                       mr::expand(doubled{}) | mr::take(200) | mr::map([&](int n) {
                                         if (n == 8) fail_as(kind);
                                         return row{n, std::vector<float>(3)};
                                       }) |
                                       mr::batch<&row::number, &row::values>({.size = rows}),
                                   quiet(threads)};
              }) == (in_filter ? of_filter : expected));
      }
    }
}

TEST_CASE("a first sample without a shape of its rows, or one that cannot be rendered, is an error of the first "
          "batch") {
  for (const int threads : many_workers) {
    CAPTURE(threads);
    CHECK(end_of([&] {
            return mr::session{mr::from(numbers(256)) | mr::map([](int) { return ragged_row{}; }) |
                                   mr::batch<&ragged_row::values>({.size = rows}),
                               quiet(threads)};
          }) == "next after 0 batches: data_error millrace: the column ragged_row::values is ragged, but its row "
                "in the first sample of the run has no options (stage batch, position 0). Construct the row with "
                "ragged(elements, {.max_length = n})");
    CHECK(end_of([&] {
            return mr::session{mr::from(numbers(256)) | mr::map([](int n) { return holds_twin{{2, n - 1}}; }) |
                                   mr::batch<&holds_twin::column>({.size = rows}),
                               quiet(threads)};
          }) == "next after 0 batches: data_error millrace: a row below 0 (stage batch, position 0)");
  }
}

TEST_CASE("the sample that decides the shapes is created once, and gets its row and its partner like any other") {
  for (const int threads : many_workers)
    for (const bool drop_last : {true, false}) {
      CAPTURE(threads);
      std::vector<std::atomic<int>> calls(44);
      mr::session run{mr::from(numbers(44)) | mr::map([&](int n) {
                        ++calls[static_cast<std::size_t>(n)];
                        return holds_twin{{2, n}};
                      }) | mr::batch<&holds_twin::column>({.size = rows, .drop_last = drop_last}),
                      quiet(threads)};
      std::int32_t next = 0;
      for (auto& b : run)
        for (std::size_t i = 0; i < b.size(); ++i, ++next) {
          const auto one = b.get<&holds_twin::column>()[i];
          CHECK(one.host()[0] == next + 1'000);
          CHECK(one.host()[1] == next);
        }
      CHECK(next == (drop_last ? 40 : 44));
      for (std::int32_t n = 0; n < 44; ++n) CHECK(calls[static_cast<std::size_t>(n)] == (n < next));
    }
}

TEST_CASE("the workers start once the shapes are known, the budget is checked and the memory is allocated") {
  for (const int threads : many_workers) {
    CAPTURE(threads);
    std::atomic<int> calls{0};
    const auto session_of = [&](std::size_t budget_bytes, bool announce) {
      auto options = quiet(threads);
      options.memory_bytes = budget_bytes;
      if (announce) options.notice = nullptr;
      return mr::session{mr::from(numbers(1'000)) | mr::map([&](int n) {
                           ++calls;
                           return row{n, std::vector<float>(1'000)};
                         }) | mr::batch<&row::number, &row::values>({.size = 100}),
                         options};
    };
    CHECK(end_of([&] { return session_of(100'000, false); }).starts_with("start after 0 batches: setup_error "));
    CHECK(calls == 1);
    const std::string shapes = " I/O threads; row::number [100] i32, row::values [100, 1000] f32; memory: ";
    std::string description;
    const std::string text = captured_stderr([&] {
      auto run = session_of(std::size_t{64} << 20, true);
      description = run.description();
      CHECK(run.next().size() == 100);
    });
    CHECK(description.starts_with("millrace: host, " + std::to_string(threads) + " workers, "));
    CHECK(as_if_alone(description).find(shapes) != std::string::npos);
    CHECK(text.starts_with(description + "\n"));
    CHECK(text.find(shapes) == text.rfind(shapes));
  }
}

TEST_CASE("shards, streamed or indexed: the first sample after a resume decides, and errors name shard and key") {
  const temporary_folder folder;
  for (int shard = 0; shard < 2; ++shard) {
    mr::shard_writer out({.pattern = folder / ("s" + std::to_string(shard) + "-%d.tar")});
    for (int n = 40 * shard; n < 40 * shard + 40; ++n)
      out.write("k" + std::to_string(n), {{"cls", std::to_string(n)}});
    out.close();
  }
  // Sample `bad_at` has another shape, or throws.
  const auto run_over = [](auto source, int bad_at, bool throws, const std::string& resume, int threads) {
    auto options = quiet(threads);
    options.resume = resume;
    return mr::session{std::move(source) | mr::map([=](const mr::record& r) {
                         const auto number = r["cls"].as<std::int32_t>();
                         if (throws && number == bad_at) throw mr::data_error("a bad one", "");
                         return row{number, std::vector<float>(number == bad_at ? 3 : 4)};
                       }) | mr::batch<&row::number, &row::values>({.size = rows, .keys = true}),
                       options};
  };
  const auto located = [&](int n, int first, const std::string& stage) {
    return "(shard " + folder / ("s" + std::to_string(n / 40) + "-0.tar") + ", offset " +
           std::to_string(n % 40 * 1'024) + ", key k" + std::to_string(n) + ", stage " + stage + ", position " +
           std::to_string(n - first) + ")";
  };
  // With an index, positions count from the beginning of the epoch, otherwise from the beginning of the session.
  const auto check = [&](const auto& new_source, bool has_index) {
    std::vector<std::string> positions;   // after each batch
    auto reference = run_over(new_source(), -1, false, "", 2);
    for (auto& b : reference) positions.push_back(mr::to_text(b.position()));
    REQUIRE(positions.size() == 10);
    for (const int first : {0, 32}) {   // of the session
      const int origin = has_index ? 0 : first;
      const std::string resume = first == 0 ? "" : positions[static_cast<std::size_t>(first) / rows - 1];
      for (const int threads : many_workers) {
        CAPTURE(threads);
        for (const int n : {0, 1, 7, 9, 32, 33, 40, 79}) {
          if (n < first) continue;
          const bool decides = n == first;
          const int position = decides ? n + 1 : n;
          CHECK(end_of([&] { return run_over(new_source(), n, false, resume, threads); }) ==
                "next after " + std::to_string((n - first) / 8) +
                    " batches: data_error millrace: the column row::values has shape " +
                    (decides ? "[4] here, but [3]" : "[3] here, but [4]") + " in the first sample of the run " +
                    located(position, origin, "batch") + one_shape);
          CHECK(end_of([&] { return run_over(new_source(), n, true, resume, threads); }) ==
                "next after " + std::to_string((n - first) / 8) + " batches: data_error millrace: a bad one " +
                    located(n, origin, "map 1"));
        }
        // Rows, keys and digest, including those of the sample that decided.
        auto run = run_over(new_source(), -1, false, resume, threads);
        int n = first;
        for (auto& b : run) {
          CHECK(mr::to_text(b.position()) == positions[static_cast<std::size_t>(n) / rows]);
          for (std::size_t i = 0; i < rows; ++i, ++n) {
            CHECK(b.template get<&row::number>()[i] == n);
            CHECK(b.keys()[i] == "k" + std::to_string(n));
          }
        }
        CHECK(n == 80);
      }
    }
  };
  check([&] { return mr::shards(folder.path(), {.seed = 5, .index = mr::index::off}); }, false);
  check([&] { return mr::shards(folder.path(), {.seed = 5}); }, true);
}
