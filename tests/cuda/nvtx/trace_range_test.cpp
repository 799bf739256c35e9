// The ranges of a session in a profiler, represented by a stub (nvtx_stub.cpp). Skipped without the CUDA toolkit's
// nvtx3.
#include <doctest/doctest.h>

#ifndef MILLRACE_NVTX

TEST_CASE("a profiler sees the ranges of a session (needs the CUDA toolkit)" * doctest::skip()) {}

#else

#include "../../copying_device.hpp"
#include "../../temporary_folder.hpp"
#include "../../unit/run/quiet_sessions.hpp"

#include <millrace/device/stream_name.hpp>
#include <millrace/millrace.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

namespace mr = millrace;

namespace {

struct labelled {
  std::int32_t label;
};

/// The number of occurrences of each line in the stub's log.
std::map<std::string, int> logged() {
  void* const stub = dlopen(MILLRACE_TEST_NVTX_STUB, RTLD_LAZY | RTLD_NOLOAD);
  if (!stub) return {};
  const auto log = reinterpret_cast<const char* (*)()>(dlsym(stub, "nvtx_stub_log"));
  std::map<std::string, int> lines;
  std::istringstream text(log());
  dlclose(stub);
  for (std::string line; std::getline(text, line);) {
    // The numbers of started ranges vary between runs.
    if (line.starts_with("start ") || line.starts_with("end ")) {
      const auto at = line.find(' ') + 1;
      line.erase(at, line.find(' ', at) + 1 - at);
    }
    ++lines[line];
  }
  return lines;
}

int sum_of(const std::map<std::string, int>& lines, const std::string& beginning) {
  int sum = 0;
  for (const auto& [line, times] : lines)
    if (line.starts_with(beginning)) sum += times;
  return sum;
}

}  // namespace

TEST_CASE("a profiler sees the ranges of a session") {
  setenv("NVTX_INJECTION64_PATH", MILLRACE_TEST_NVTX_STUB, 1);   // read at the first range of this process
  const temporary_folder folder;
  {
    mr::shard_writer shards({.pattern = folder / "part-%03d.tar", .max_samples = 20});
    for (int i = 0; i < 40; ++i) shards.write(std::to_string(i), {{"cls", std::to_string(i)}});
    shards.close();
  }
  {
    auto flow = mr::shards(folder / "part-{000..001}.tar", {.index = mr::index::off})
              | mr::map([](const mr::record& r) { return labelled{r["cls"].as<std::int32_t>()}; })
              | mr::batch<&labelled::label>({.size = 10})
              | mr::to_device({.device = copying_device()});
    std::size_t rows = 0;
    for (auto& b : mr::session{std::move(flow), quiet(2)}) rows += b.size();
    CHECK(rows == 40);
  }
  const auto lines = logged();
  REQUIRE_FALSE(lines.empty());
  for (const std::string batch : {"0", "1", "2", "3"}) {
    CAPTURE(batch);
    CHECK(lines.count("push millrace h2d#" + batch) == 1);
    CHECK(lines.count("start millrace batch#" + batch) == 1);
    CHECK(lines.count("push millrace wait#" + batch) == 1);
  }
  CHECK(lines.at("start millrace batch#3") == 1);
  CHECK(lines.count("start millrace batch#4") == 0);
  CHECK(lines.count("push millrace read/part-000.tar") == 1);
  CHECK(lines.count("push millrace read/part-001.tar") == 1);
  CHECK(lines.count("push millrace decode") == 1);
  CHECK(sum_of(lines, "push ") == sum_of(lines, "pop millrace"));
  CHECK(sum_of(lines, "start ") == sum_of(lines, "end millrace"));
  CHECK(lines.count("thread millrace-read") == 1);
  CHECK(lines.count("thread millrace-stager") == 1);
  CHECK(sum_of(lines, "push ") + sum_of(lines, "pop ") + sum_of(lines, "start ") + sum_of(lines, "end ") +
            sum_of(lines, "thread ") ==
        sum_of(lines, ""));
}

#endif
