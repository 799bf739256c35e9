// A tuning rule that opens and closes workers at random after every batch: the output of a run must not depend on it.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/tune/autotuner.hpp>

class restless_concurrency final : public millrace::tuning_rule {
 public:
  explicit restless_concurrency(std::uint64_t seed = 1) : seed_(seed) {}

  millrace::detail::concurrency_counts max(const millrace::detail::concurrency_counts& now) const override {
    return {now.workers + 3, now.reads + 3};
  }
  millrace::detail::owner<millrace::detail::autotuner> start(
      const millrace::detail::concurrency_limits& s) const override {
    return std::make_unique<tuner>(s.max, seed_);
  }

 private:
  struct tuner final : millrace::detail::autotuner {
    tuner(const millrace::detail::concurrency_counts& s, std::uint64_t seed) : most(s), random({.seed = seed}) {}
    bool due(std::uint64_t) const noexcept override { return true; }
    millrace::detail::concurrency_counts evaluate(const millrace::flow_statistics&) override {
      return {1 + random.below(most.workers), 1 + random.below(most.reads)};
    }
    const millrace::detail::concurrency_counts most;
    millrace::rng random;
  };

  const std::uint64_t seed_;
};
