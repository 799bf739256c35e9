// Runs over files of lines with single bad ones: each is one damaged sample, and the other lines are delivered.
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/millrace.hpp>
#include <millrace/text.hpp>

#include "../../temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

struct numbered {
  std::int32_t number;
};

numbered number_of(const mr::line& l) { return {l.field().as<std::int32_t>()}; }

/// Lines "0", "1", ... of `count`; every `bad`-th one, from the third on, is not UTF-8 or too long.
std::string file_of(int first, int count, int bad) {
  std::string text;
  for (int i = first; i < first + count; ++i)
    text += i % bad != 2 ? std::to_string(i) + "\n" : i % 2 ? "caf\xe9\n" : std::string(3'000, '1') + "\n";
  return text;
}

std::vector<std::string> files_of(const temporary_folder& folder, int bad) {
  std::vector<std::string> names;
  for (int f = 0; f < 3; ++f) {
    names.push_back(folder / ("f" + std::to_string(f) + ".txt"));
    std::ofstream(names.back(), std::ios::binary) << file_of(f * 500, 500, bad);
  }
  return names;
}

struct result {
  std::vector<std::int32_t> numbers{};
  std::uint64_t masked = 0;
  std::string error{};
};

result run_over(const std::vector<std::string>& names, const mr::session_options& o, std::size_t window = 0) {
  result all;
  const auto lines = [&] { return mr::lines(names, {.seed = 3, .limits = {.max_line_bytes = 1'000}}); };
  const auto read = [&](auto flow) {
    mr::session run{std::move(flow) | mr::map(number_of) | mr::batch<&numbered::number>({.size = 10}), o};
    for (auto& b : run)
      for (std::size_t i = 0; i < b.size(); ++i) {
        const bool valid = o.on_damage.policy == mr::damage::fail || b.valid()[i] != 0;
        all.masked += !valid;
        if (valid) all.numbers.push_back(b.template get<&numbered::number>().host()[i]);
      }
  };
  try {
    if (window > 0) read(lines() | mr::shuffle({.window = window}));
    else read(lines());
  } catch (const mr::error& e) {
    all.error = e.what();
  }
  return all;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a bad line is one damaged sample: all other lines are delivered, and counts and the quarantine list name "
          "it") {
  const temporary_folder folder;
  const auto names = files_of(folder, 100);   // 15 bad ones, of either kind
  for (const int threads : {0, 2})
    for (const std::size_t window : {0, 50}) {
      CAPTURE(threads);
      CAPTURE(window);
      const std::string list = folder / ("list" + std::to_string(threads) + std::to_string(window));
      const result r = run_over(names, {.threads = threads, .notice = mr::quiet,
                                        .on_damage = {.policy = mr::damage::mask, .at_most_share = 0.5,
                                                      .quarantine = list}},
                                window);
      REQUIRE_MESSAGE(r.error.empty(), r.error);
      CHECK(r.masked == 15);
      std::vector<std::int32_t> sorted = r.numbers, expected;
      std::sort(sorted.begin(), sorted.end());
      for (int i = 0; i < 1'500; ++i)
        if (i % 100 != 2) expected.push_back(i);
      CHECK(sorted == expected);
      if (window == 0) CHECK(r.numbers == expected);
      std::string entries;
      for (const auto& file : std::filesystem::directory_iterator(folder / ""))
        if (file.path().filename().string().starts_with("list" + std::to_string(threads) + std::to_string(window)))
          entries += text_of(file.path().string());
      CHECK(std::count(entries.begin(), entries.end(), '\n') == 15);
      CHECK(entries.find("f1.txt") != std::string::npos);
      CHECK_MESSAGE(entries.find("line 103") != std::string::npos, entries);
    }
  const result replaced = run_over(names, {.threads = 1, .notice = mr::quiet,
                                           .on_damage = {.policy = mr::damage::replace, .at_most_share = 0.5}});
  CHECK(replaced.error.empty());
  CHECK(replaced.numbers.size() == 1'500);
}

TEST_CASE("without on_damage a bad line ends the run with its file, line and column, after the lines before it") {
  const temporary_folder folder;
  const std::string name = folder / "labels.txt";
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + "\n";
  std::ofstream(name, std::ios::binary) << text + "a cat\xc3\xa9 and \x92 dog\n" + text;
  const result r = run_over({name}, {.threads = 1, .notice = mr::quiet});
  CHECK(r.numbers.size() == 40);
  CHECK_MESSAGE(r.error.find("labels.txt:41 is not valid UTF-8: got byte 0x92 at column 12") != std::string::npos,
                r.error);
}
