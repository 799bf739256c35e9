// The options of `bench bound`: the data, the step, the storage, the set-up.
//
//   --data 'shards-{000..009}.tar'   fields jpg (or jpeg) and cls; none: photographs, or shapes where there are none
//   --step 0.02 | resnet50-h100 | unet3d-h100 | --step-from run.jsonl      seconds a batch
//   --batch N --size PIXELS --workers N --io-threads N --prefetch N
//   --bytes-per-second N --latency SECONDS --jitter SHARE --cold           the storage
//   --seconds N --rounds N --html FILE [--quick] [--json FILE]
//
// Errors: setup_error for invalid values. Source of the step times: MLPerf Storage v1.0, accelerator H100: ResNet-50
// 400 samples in 0.224 s, 3D U-Net 7 samples in 0.323 s.
#pragma once

#include "step_log.hpp"
#include "throttled_shards.hpp"

#include "../../examples/command_line.hpp"

#include <millrace/base/machine.hpp>

#include <cstdlib>

namespace bench {

struct bound_settings {
  std::string data{}, html{};
  double step_s = 0;      ///< of a batch, mean
  logged_steps steps{};   ///< the factors of single steps
  std::string step_name{};
  std::size_t batch = 64, side = 224, prefetch = 4;
  unsigned workers = 1, io_threads = 4, rounds = 3;
  double seconds = 2;   ///< of one run
  throttle storage{};
};

inline double decimal(command_line& args, std::string_view name, double otherwise) {
  const std::string text = args.text(name, "");
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !(value >= 0))
    args.refuse(std::string(name) + " is '" + millrace::printable(text) + "', expected a number, 0 or more");
  return value;
}

inline bound_settings read_bound_settings(command_line& args, bool quick) {
  bound_settings s;
  s.data = args.text("--data", "");
  s.html = args.text("--html", "");
  s.batch = args.number("--batch", s.batch);
  s.side = args.number("--size", s.side);
  s.prefetch = args.number("--prefetch", s.prefetch);
  s.workers = args.number("--workers", std::max(1U, millrace::usable_cores() - 1));
  s.io_threads = args.number("--io-threads", s.io_threads);
  s.rounds = args.number("--rounds", quick ? 2U : s.rounds);
  s.seconds = decimal(args, "--seconds", quick ? 0.7 : s.seconds);
  s.storage = {.bytes_per_second = decimal(args, "--bytes-per-second", 0),
               .latency_ns = static_cast<std::uint64_t>(1e9 * decimal(args, "--latency", 0)),
               .jitter = decimal(args, "--jitter", 0),
               .cold = args.flag("--cold")};
  if (s.batch == 0 || s.side == 0 || s.prefetch == 0 || s.workers == 0 || s.io_threads == 0 || s.rounds == 0)
    args.refuse("--batch, --size, --prefetch, --workers, --io-threads and --rounds are at least 1");
  const std::string log = args.text("--step-from", "");
  const std::string step = args.text("--step", log.empty() ? "resnet50-h100" : "");
  const auto batch = static_cast<double>(s.batch);
  s.step_name = log.empty() ? step : "as in " + log;
  if (!log.empty() && !step.empty()) args.refuse("--step and --step-from exclude each other");
  if (!log.empty()) {
    s.steps = steps_of_log(log);
    s.step_s = batch * s.steps.sample_s;
  } else if (step == "resnet50-h100") {
    s.step_s = batch * 0.224 / 400;
  } else if (step == "unet3d-h100") {
    s.step_s = batch * 0.323 / 7;
  } else {
    char* end = nullptr;
    s.step_s = std::strtod(step.c_str(), &end);
    if (end != step.c_str() + step.size() || !(s.step_s >= 0))
      args.refuse("--step is '" + millrace::printable(step) + "', expected seconds, resnet50-h100 or unet3d-h100");
  }
  return s;
}

}   // namespace bench
