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
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using mr::detail::memory_text;

namespace {

struct example {
  std::int64_t number;
};

/// Sets environment variables while the object exists. No session may exist when they change.
class environment_variables {
 public:
  explicit environment_variables(std::vector<std::pair<const char*, const char*>> all) : all_(std::move(all)) {
    for (const auto& [name, value] : all_) setenv(name, value, 1);
  }
  environment_variables(const environment_variables&) = delete;
  environment_variables& operator=(const environment_variables&) = delete;
  ~environment_variables() {
    for (const auto& [name, value] : all_) unsetenv(name);
  }

 private:
  std::vector<std::pair<const char*, const char*>> all_;
};

const std::vector<std::pair<const char*, const char*>> third_of_eight = {
    {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "8"}, {"TORCHELASTIC_RUN_ID", "x"}};

class text_files {
 public:
  text_files() {
    for (int i = 0; i < 8; ++i)
      for (int line = 0; line < 100; ++line)
        std::ofstream(folder_ / (std::to_string(i) + ".txt"), std::ios::app) << line << '\n';
  }
  auto flow() const {
    return mr::lines(folder_ / "{0..7}.txt") |
           mr::map([](const mr::line& l) { return example{static_cast<std::int64_t>(l.text().size())}; }) |
           mr::batch<&example::number>({.size = 2});
  }
  mr::session_options options(const std::optional<mr::world>& world) const {
    mr::session_options o = quiet(1);
    o.world = world;
    o.epoch_batches = 4;
    return o;
  }
  /// Returns the start line of a complete run.
  std::string start(const std::optional<mr::world>& world) const {
    mr::session run{flow(), options(world)};
    for (auto& b : run) static_cast<void>(b);
    return run.description();
  }

 private:
  const temporary_folder folder_;
};

}  // namespace

TEST_CASE("ranks of one machine divide its memory, and the start line names the rank") {
  const text_files files;
  const auto budget = [](std::size_t processes) {
    return " of " + memory_text(
                        static_cast<double>(mr::detail::share_of_machine(processes).memory_bytes / 4));
  };
  CHECK(files.start({}).starts_with("millrace: host"));
  CHECK(files.start({}).find(budget(1)) != std::string::npos);
  const environment_variables launched(third_of_eight);
  const std::string alone = files.start(mr::single_process);   // a separate run, concurrently with seven others
  CHECK(alone.starts_with("millrace: host"));
  CHECK(alone.find(budget(8)) != std::string::npos);
  const std::string text = files.start(mr::world_from_launcher());
  CHECK(text.starts_with("millrace: rank 3 of 8 (torchrun, local rank 3 of 8); host, "));
  CHECK(text.find(budget(8)) != std::string::npos);
  CHECK(files.start(mr::world{.rank = 1, .size = 8})
            .starts_with("millrace: rank 1 of 8, one of 8 on this machine; host, "));
}

TEST_CASE("several ranks of a launcher choose the world of their session, a single rank need not") {
  const text_files files;
  const auto refused = [&](const char* cause) {
    const auto step = [](auto&) { FAIL("a batch was delivered"); };
    for (const char* part : {cause, ".world = mr::world_from_launcher()", ".world = mr::single_process"}) {
      CHECK_THROWS_WITH_AS(files.start({}), doctest::Contains(part), mr::setup_error);
      CHECK_THROWS_WITH_AS(mr::feed(files.flow(), files.options({}), step), doctest::Contains(part), mr::setup_error);
    }
  };
  {
    const environment_variables launched(third_of_eight);
    refused("session_options::world is not set: got rank 3 of 8 (torchrun, local rank 3 of 8)");
    std::size_t batches = 0;
    mr::feed(files.flow(), files.options(mr::single_process), [&](auto&) { ++batches; });
    CHECK(batches == 4);
  }
  {
    const environment_variables contradictory(
        {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
    refused("session_options::world is not set, and the environment does not contain a valid rank: the environment "
            "contains rank 0 of 1 (torchrun, local rank 0) and rank 1 of 2 (Open MPI, local rank 0) at once");
    CHECK(files.start(mr::single_process).starts_with("millrace: host"));
    CHECK(files.start(mr::world{.rank = 1, .size = 2}).starts_with("millrace: rank 1 of 2; host"));
  }
  const environment_variables one_rank({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  CHECK(files.start({}).starts_with("millrace: host"));
}

TEST_CASE("ranks of one machine divide its cores, and each has at least one worker") {
  for (const std::size_t ranks : {1U, 2U, 3U, 1'000U}) {
    CAPTURE(ranks);
    mr::session_options options;
    options.world = mr::world{.rank = 0, .size = ranks, .local_size = ranks};
    const unsigned cores = mr::detail::cores_for_workers(options, {});
    CHECK(cores == mr::detail::share_of_machine(ranks).cores);
    CHECK(mr::detail::automatic_workers(options, {}) == std::max(1U, cores - 1));
    CHECK(mr::detail::cores_for_workers(options, {0}) == 1);   // the cores near a device
  }
}
