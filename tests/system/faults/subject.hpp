// Shared by the parts of the program under faults: its stages, the delivered rows, and the shim's functions.
//
//   void reader(const places& at, delivered& to) { deliver(mr::shards(at.data + "/tar/*.tar") | ..., {}, to); }
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/run/session_options.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// Functions of the shim, null without it.
extern "C" {
__attribute__((weak)) void faults_arm();
__attribute__((weak)) void faults_disarm();
__attribute__((weak)) void faults_spare(bool on);
__attribute__((weak)) int faults_threads();
}

/// During its lifetime, calls of this thread do not fail.
class spared {
 public:
  spared() { spare(true); }
  spared(const spared&) = delete;
  spared& operator=(const spared&) = delete;
  ~spared() { spare(false); }

 private:
  static void spare(bool on) {
    if (faults_spare) faults_spare(on);
  }
};

/// The folders that a stage reads and writes. The second one is initially empty.
struct places {
  std::string data, out;
};

/// The rows that a stage delivered, in order. The memory is allocated in advance.
class delivered {
 public:
  delivered() { rows_.reserve(4'096); }

  template <class T>
  void add(std::span<const T> values) {
    rows_.push_back(millrace::detail::digest_bytes(std::as_bytes(values)));
  }
  void add(std::string_view text) { add(std::span<const char>(text)); }
  const std::vector<std::uint64_t>& rows() const noexcept { return rows_; }
  /// Losses that the stage itself counted.
  std::uint64_t told_lost = 0;

 private:
  std::vector<std::uint64_t> rows_;
};

/// Adds the columns of a batch.
template <class Batch>
void add_columns(delivered& to, Batch& b) {
  const spared here;
  std::apply(
      [&](const auto&... column) {
        std::uint64_t all = 0;
        const auto add = [&all](const auto& view) {
          if constexpr (requires { view.values; })
            all = millrace::detail::digest_bytes(std::as_bytes(view.values.host()), all);
          else all = millrace::detail::digest_bytes(std::as_bytes(view.host()), all);
        };
        (add(column), ...);
        to.add(std::span<const std::uint64_t>(&all, 1));
      },
      b.columns());
}

struct stage {
  const char* name;
  void (*run)(const places& at, delivered& to);
};

/// subject_flows.cpp: from the source to the batch.
std::span<const stage> flow_stages();
std::span<const stage> text_stages();
/// subject_files.cpp: the stages that write files.
std::span<const stage> file_stages();
/// subject_scenarios.cpp: files that change, callables that throw, trainers that stop.
std::span<const stage> scenarios();
