// Shared by the tests of this folder: a clock that tests set, a sink that records.
#pragma once

#include "../../temporary_folder.hpp"

#include <millrace/train/log.hpp>

#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct fake_clock {
  std::shared_ptr<std::atomic<std::int64_t>> ns = std::make_shared<std::atomic<std::int64_t>>(0);
  static constexpr std::int64_t unix_start_ns = 1'700'000'000'250'000'000;

  void advance(std::int64_t by_ns) { *ns += by_ns; }
  millrace::instant operator()() const { return {.steady_ns = *ns, .unix_ns = unix_start_ns + *ns}; }
};

/// Keeps every row; the test reads the arrived rows from a shared part.
struct remembering_sink final : millrace::sink {
  struct shared {
    std::mutex gate;                 // locked by a test to hang the sink
    std::mutex mutex;
    std::vector<millrace::row> rows;
    std::atomic<int> entered{0}, closed{0};
    std::atomic<bool> broken{false};

    std::vector<std::uint64_t> steps() {
      const std::lock_guard lock(mutex);
      std::vector<std::uint64_t> all;
      for (const auto& r : rows) all.push_back(r.step);
      return all;
    }
  };
  explicit remembering_sink(std::shared_ptr<shared> s) : memory(std::move(s)) {}

  const char* name() const noexcept override { return "remembering"; }
  void write(const millrace::row& r) override {
    ++memory->entered;
    const std::lock_guard gate(memory->gate);
    if (memory->broken) throw std::runtime_error("broken on purpose");
    const std::lock_guard lock(memory->mutex);
    memory->rows.push_back(r);
  }
  void close() override { ++memory->closed; }

  std::shared_ptr<shared> memory;
};
