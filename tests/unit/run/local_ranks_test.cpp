#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <millrace/base/machine.hpp>
#include <millrace/run/memory_budget.hpp>
#include <millrace/run/session.hpp>
#include <millrace/run/session_share.hpp>
#include <millrace/sources/lines.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

namespace mr = millrace;
using mr::detail::readable_bytes;

namespace {

struct example {
  std::int64_t number;
};

}  // namespace

TEST_CASE("ranks of one machine divide its memory, and the start line names the rank") {
  const std::pair<const char*, const char*> variables[] = {
      {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "8"}, {"TORCHELASTIC_RUN_ID", "x"}};
  const temporary_folder folder;
  for (int i = 0; i < 8; ++i)
    for (int line = 0; line < 100; ++line)
      std::ofstream(folder / (std::to_string(i) + ".txt"), std::ios::app) << line << '\n';
  const auto start = [&](mr::world world) -> std::string {
    auto options = quiet(1);
    options.world = world;
    options.epoch_batches = 4;
    mr::session run{mr::lines(folder / "{0..7}.txt") |
                        mr::map([](const mr::line& l) { return example{static_cast<std::int64_t>(l.text().size())}; }) |
                        mr::batch<&example::number>({.size = 2}),
                    options};
    for (auto& b : run) static_cast<void>(b);
    return run.description();
  };
  const auto budget = [](std::size_t processes) {
    return " of " + readable_bytes(
                        static_cast<double>(mr::detail::share_of_machine(processes).memory_bytes / 4));
  };
  CHECK(start({}).starts_with("millrace: host"));
  CHECK(start({}).find(budget(1)) != std::string::npos);
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  CHECK(start({}).find(budget(8)) != std::string::npos);   // a run of its own, beside seven others
  const std::string text = start(mr::world_from_launcher());
  CHECK(text.starts_with("millrace: rank 3 of 8 (torchrun, local rank 3 of 8); host, "));
  CHECK(text.find(budget(8)) != std::string::npos);
  CHECK(start({.rank = 1, .size = 8}).starts_with("millrace: rank 1 of 8, one of 8 on this machine; host, "));
  for (const auto& [name, value] : variables) unsetenv(name);
}

TEST_CASE("ranks of one machine divide its cores, and each has at least one worker") {
  for (const std::size_t ranks : {1U, 2U, 3U, 1'000U}) {
    CAPTURE(ranks);
    mr::session_options options;
    options.world = {.rank = 0, .size = ranks, .local_size = ranks};
    const unsigned cores = mr::detail::cores_for_workers(options, {});
    CHECK(cores == mr::detail::share_of_machine(ranks).cores);
    CHECK(mr::detail::automatic_workers(options, {}) == std::max(1U, cores - 1));
    CHECK(mr::detail::cores_for_workers(options, {0}) == 1);   // the cores near a device
  }
}
