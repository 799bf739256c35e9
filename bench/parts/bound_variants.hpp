// The ablations of `bench bound`: the same training, each time without one of its parts.
//
//   bench::bound_runs runs(settings, names, chip);
//   bench::outcome o = runs.run("warm");            // o.samples_per_s, o.statistics
//
//   step-only    steps alone                        h2d+step      a blocking copy and a step, in turns
//   ready        decoded rows are there             ram           encoded samples are in memory
//   warm, cold   from the page cache, from storage (as throttled)
//   no-transform as warm, but no image is decoded   sync          as warm, all on one thread
//   cpu-only     ram without copies and steps       io-only       no-transform without copies and steps
//
// Errors: those of the data. Threads: one.
#pragma once

#include "accelerator.hpp"
#include "bound_settings.hpp"

#include <millrace/measure/values/timeline.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <memory>

namespace bench {

struct outcome {
  double samples_per_s = 0;
  millrace::flow_statistics statistics{};
  millrace::timeline events{};
  std::string description{};
};

class bound_runs {
 public:
  bound_runs(const bound_settings& s, std::vector<std::string> names, accelerator& chip);
  ~bound_runs();

  static std::vector<std::string> all();
  outcome run(const std::string& name);
  /// Runs it as the user would, with other settings.
  outcome run_with(unsigned workers, std::size_t prefetch);

  /// The storage of the user's settings.
  const throttle& used() const noexcept;
  const std::vector<std::string>& names() const noexcept;
  /// The mean size of a sample as it is read.
  double sample_bytes() const;

 private:
  class flows;
  std::unique_ptr<flows> flows_;
};

}   // namespace bench
