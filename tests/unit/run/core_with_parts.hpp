// Shared by the tests of the core of a session: an order and a reader that record their calls.
#pragma once

#include <millrace/item/column/columns.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/run/run_core.hpp>

#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

struct number_row {
  std::int64_t number = 0;
};
inline number_row number_row_of(int number) {
  if (number < 0) throw mr::data_error("negative", "Leave it out");
  if (number == 999) throw mr::setup_error("no such number", "Choose another one");
  return {number};
}

/// Counts the core's calls of the order, and refuses batch `bad_batch`.
struct counting_order final : mr::detail::planned_run {
  std::uint64_t bad_batch = ~std::uint64_t{0};
  bool bad_end = false;
  std::size_t window_samples = 1;
  std::vector<std::uint64_t> accounted{};
  int finished = 0;

  mr::detail::batch_origin account_for(mr::detail::ready_batch& b) override {
    accounted.push_back(b.batch);
    if (b.batch == bad_batch) throw mr::conservation_error("a sample is missing", "Report it");
    return {.first_step = 100};
  }
  void finish() override {
    ++finished;
    if (bad_end) throw mr::conservation_error("an epoch is short", "Report it");
  }
  mr::detail::batch_numbers numbers() const override { return {}; }
  std::size_t window() const noexcept override { return window_samples; }
  std::string describe() const override { return "; an order"; }
  std::vector<mr::notice> notices() const override {
    return {{.kind = mr::notice_kind::order, .severity = mr::notice_severity::warning, .text = "an even order"}};
  }
  std::string shuffle_advice() const override { return "; some advice"; }
};

/// Reads the given samples of each epoch inside of advance(), and logs the core's calls.
struct list_reader final : mr::detail::read_stage {
  struct number {
    int item = 0;
    bool damaged = false;
  };
  std::vector<std::vector<number>> epochs{};
  std::uint64_t first_epoch = 0;
  mr::detail::sample_sink<int>* next = nullptr;
  std::size_t epoch = 0, at = 0;
  std::uint64_t read = 0;
  bool over = false;
  mr::event_counts* counts = nullptr;
  std::string log{};

  std::uint64_t bytes_read() const noexcept override { return 10 * read; }
  std::uint64_t samples_read() const noexcept override { return read; }
  std::uint64_t busy_ns() const noexcept override { return 0; }
  std::size_t threads() const noexcept override { return 0; }
  std::size_t read_ahead_bytes() const noexcept override { return 0; }
  std::size_t read_ahead_limit_bytes() const noexcept override { return 77; }
  void name_samples(std::shared_ptr<mr::detail::sample_names>) override {}
  void continue_after_damage() override {}
  std::exception_ptr explain(std::exception_ptr why) const override {
    try {
      std::rethrow_exception(why);
    } catch (mr::error& e) {
      e.add("; explained");
    } catch (...) {
    }
    return why;
  }
  void count_into(mr::event_counts& into) noexcept override { counts = &into; }
  std::string waits(std::uint64_t) const override { return "the reader"; }
  void start() override { log += counts ? "start " : "start without counts "; }
  bool advance() override {
    if (over || !next->can_accept()) return false;
    if (epoch == epochs.size()) {
      over = true;
      next->finish(nullptr);
    } else if (at == epochs[epoch].size()) {
      next->end_epoch();
      ++epoch;
      at = 0;
    } else {
      const number n = epochs[epoch][at++];
      mr::detail::sample<int> s{.item = n.item, .epoch = first_epoch + epoch};
      if (n.damaged) {
        s.item = std::make_exception_ptr(mr::data_error("torn", "Copy it", {.stage = "source", .shard = "a.tar"}));
        s.what = mr::detail::sample<int>::kind::damaged;
      }
      next->put(std::move(s));
      ++read;
    }
    next->publish();
    return true;
  }
  void stop() noexcept override { log += "stop "; }
  void join() noexcept override { log += "join "; }
};

/// A lease whose rows the test may read.
struct opened_lease : mr::batch_lease {
  std::vector<std::int64_t> numbers() const {
    const auto* const first = reinterpret_cast<const std::int64_t*>(meta().data);
    return {first, first + size()};
  }
};

/// The options of a core without threads that prints nothing.
struct core_options {
  mr::session_options session{
      .threads = 0, .memory_bytes = std::size_t{1} << 20, .notice = mr::quiet,
      .stalls = {.after = std::chrono::seconds(0)}};
  mr::detail::run_settings settings{.batch_rows = 4, .prefetch_batches = 2, .shards = 1};
  bool drop_last = false;
};

/// A core with its parts: a reader of numbers, a map and a batch.
struct core_with_parts {
  using builder_type = mr::detail::pipeline_builder<mr::detail::columns<&number_row::number>>;

  explicit core_with_parts(core_options o = {})
      : rule{.policy = o.session.on_damage.policy, .in_a_row = o.session.on_damage.in_a_row},
        core(o.session, o.settings),
        builder({.workers = 0, .damaged = &rule}, core.host_slots()) {
    const mr::batch_options rows{.size = o.settings.batch_rows, .drop_last = o.drop_last};
    auto maps = append(mr::detail::stage_list<>{}, mr::map(number_row_of));
    reader.next = &builder.build<int>(append(std::move(maps), mr::batch<&number_row::number>(rows)));
  }
  ~core_with_parts() { core.shut_down(); }

  /// Adds an epoch of first .. first + count - 1.
  void add_epoch(int first, int count) {
    reader.epochs.emplace_back();
    for (int n = first; n < first + count; ++n) reader.epochs.back().push_back({n});
  }
  void start() {
    core.start({.order = &order, .read = &reader, .segments = builder.nodes(), .last = &builder.last(),
                .damaged = &rule});
  }
  /// The numbers of the next batch, and {} after the last one.
  std::vector<std::int64_t> next(bool stop_at_epoch = false) {
    opened_lease b;
    static_cast<mr::batch_lease&>(b) = core.next(stop_at_epoch);
    return b ? b.numbers() : std::vector<std::int64_t>();
  }
  /// The numbers of all batches of a loop over an epoch, or over the rest.
  std::vector<std::int64_t> loop(std::uint64_t epoch, int at_most = 100) {
    opened_lease current;
    std::vector<std::int64_t> all;
    for (bool more = core.begin(current, epoch); more; more = core.step(current, epoch)) {
      for (const std::int64_t n : current.numbers()) all.push_back(n);
      if (--at_most == 0) break;
    }
    return all;
  }

  counting_order order;
  list_reader reader;
  mr::detail::damage_rule rule;
  mr::detail::run_core core;
  builder_type builder;
};
