// Metrics with round numbers, for tests of the verdict and of the reports.
//
//   mr::flow_statistics f = statistics_of({.step_s = 9, .work_s = 2});   // the step was busy 9 of 10 seconds
//
// 100 batches of 50 samples in 10 s; 4 workers, 2 I/O threads.
#pragma once

#include <millrace/measure/values/flow_statistics.hpp>

#include <string>
#include <string_view>

struct busy_seconds {
  double read_s = 5, unpack_s = 0, work_s = 8, copy_s = 1, step_s = 2;   ///< of all workers of a stage together
};

inline std::uint64_t in_ns(double seconds) { return static_cast<std::uint64_t>(1e9 * seconds); }

inline millrace::flow_statistics statistics_of(const busy_seconds& busy) {
  namespace mr = millrace;
  mr::flow_statistics f;
  f.wall_ns = in_ns(10);
  f.batches = 100;
  f.samples = 5'000;
  f.batch_samples = 50;
  f.host_slots = 4;
  f.device_slots = 3;
  const auto stage = [&](const char* name, mr::stage_kind kind, std::size_t workers, double seconds) {
    mr::stage_statistics s{.name = name, .kind = kind, .concurrency = workers, .busy_ns = in_ns(seconds),
                        .items = f.samples};
    s.starved_ns = in_ns(10 * static_cast<double>(workers) - seconds);
    f.stages.push_back(s);
  };
  stage("read", mr::stage_kind::read, 2, busy.read_s);
  f.stages.back().bytes = 500'000'000;
  if (busy.unpack_s > 0) stage("unpack", mr::stage_kind::unpack, 2, busy.unpack_s);
  stage("workers", mr::stage_kind::work, 4, busy.work_s);
  f.stages.back().phases = {{"decode", in_ns(0.7 * busy.work_s), {}}, {"resize", in_ns(0.3 * busy.work_s), {}}};
  stage("copy", mr::stage_kind::copy, 1, busy.copy_s);
  f.stages.back().bytes = 10'000'000'000;
  stage("step", mr::stage_kind::step, 1, busy.step_s);
  // Two reads at a time, as if answers were late rather than filled the pipe.
  f.reads_at_once.add(
      2, {.ns = in_ns(busy.read_s / 2), .reads = 5'000, .read_ns = in_ns(busy.read_s), .bytes = 500'000'000});
  return f;
}

inline bool holds(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

inline std::size_t times_in(const std::string& text, std::string_view piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++n;
  return n;
}
