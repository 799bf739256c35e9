// Shared by the tests of the read stages' base: a source that follows a script, and a small stage that reads it.
#pragma once

#include "../../work/segment/recording_sink.hpp"

#include <millrace/base/clock.hpp>
#include <millrace/read/stage/read_stage_base.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// An item that reports its number of bytes.
struct sized_number {
  int number = 0;
  std::size_t bytes = 1;
  std::size_t held_bytes() const noexcept { return bytes; }
};

/// One call of a reader: a number, or an error, after some time.
struct scripted_read {
  int number = 0;
  std::size_t bytes = 1;
  std::exception_ptr error{};
  std::uint64_t takes_ns = 0;
};

/// A source whose shards follow a script. Its kinds below add optional members of a source.
struct scripted_source {
  using item = sized_number;
  std::vector<std::vector<scripted_read>> script{};

  struct reader {
    const std::vector<scripted_read>* reads;
    std::size_t at = 0;
    std::optional<sized_number> next() {
      if (at == reads->size()) return std::nullopt;
      const scripted_read& r = (*reads)[at++];
      for (const std::uint64_t start = mr::detail::steady_now_ns(); mr::detail::steady_now_ns() - start < r.takes_ns;) {
      }
      if (r.error) std::rethrow_exception(r.error);
      return sized_number{r.number, r.bytes};
    }
  };
  std::size_t shards() const { return script.size(); }
  std::string shard_name(std::size_t shard) const { return "data/" + std::to_string(shard) + ".tar"; }
  reader open(std::size_t shard, std::uint64_t) const { return {&script[shard]}; }

  /// Adds a shard of `count` numbers from `first` on.
  scripted_source& add(int first, int count, std::size_t bytes = 1, std::uint64_t takes_ns = 0) {
    script.emplace_back();
    for (int n = first; n < first + count; ++n) script.back().push_back({n, bytes, nullptr, takes_ns});
    return *this;
  }
};

/// Reads by the options; `advance()` reads one portion.
template <class Source>
struct small_read_stage final : mr::detail::read_stage_base<Source> {
  using base = mr::detail::read_stage_base<Source>;
  using portion = typename base::portion;

  struct options {
    std::size_t threads = 0;
    std::size_t open_shards = 1;
    mr::detail::reorder_buffer_options order{};
  };

  small_read_stage(const Source& source, mr::detail::sample_sink<typename Source::item>& sink, options o = {})
      : base(source, sink, {.threads = o.threads, .read_ahead_bytes = 1'000}),
        open_shards(o.open_shards), plan({.shards = source.shards()}), buffer(plan, o.order, sink) {}

  bool advance() override {
    std::unique_lock lock(this->mutex_);
    const portion work = find_work();
    if (!work.from) return pass_on();
    this->read_into(lock, work, this->read_by_advance_);
    was_left_empty = this->read_by_advance_.samples.empty() && this->read_by_advance_.bytes == 0 &&
                     this->read_by_advance_.more && !this->read_by_advance_.error && !work.from->has_reader;
    pass_on();
    return true;
  }
  void run() {
    while (advance()) {
    }
  }
  std::size_t read_ahead_bytes() const noexcept override { return buffer.queued_bytes(); }

  /// Lets find_work() return work, which it did not while `withheld` was set.
  void release() {
    const std::lock_guard lock(this->mutex_);
    withheld = false;
  }

  /// Returns once a thread that passed on samples has released the lock, to read or to sleep.
  void wait_for_lock() { const std::lock_guard lock(this->mutex_); }

  bool pass_on() override {
    const bool moved = buffer.pass_on();
    this->passed_on_ = buffer.passed_on();
    return moved;
  }
  portion find_work() override {
    ++searches;
    if (withheld || buffer.finished()) return {};
    auto* from = buffer.first_idle([](const auto&) { return true; });
    if (!from && buffer.open_shards() < open_shards) from = buffer.open_next();
    return {.of = &buffer, .from = from, .most = most, .in_turn = from == buffer.front()};
  }
  bool needs_space() override { return !buffer.had_space(); }
  void finish(std::exception_ptr error) override { buffer.finish(std::move(error)); }

  std::size_t open_shards;
  std::size_t most = 32;
  bool withheld = false, was_left_empty = false;
  std::atomic<std::uint64_t> searches{0};
  mr::detail::shard_order plan;
  mr::detail::reorder_buffer<Source> buffer;
};

/// A source, its stage and the sink. The workers are never idle: the clock ends no chunk of few samples.
template <class Source>
struct stage_with_sink {
  using stage_type = small_read_stage<Source>;

  explicit stage_with_sink(Source s, typename stage_type::options o = {})
      : source(std::move(s)), stage(source, sink, o) {
    sink.waiting = 1;
  }
  ~stage_with_sink() {
    stage.stop();
    stage.join();
  }
  std::string run() {
    stage.run();
    return sink.log();
  }

  const Source source;
  recording_sink<sized_number> sink;
  stage_type stage;
};

inline std::exception_ptr scripted_damage(const char* text = "torn") {
  return std::make_exception_ptr(mr::data_error(text, "Copy it"));
}
