// The flows of parts/bound_variants.hpp, compiled once for all benchmarks that run them.
#include "bound_variants.hpp"

#include <millrace/flow/flow.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/millrace.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

using record_list = std::shared_ptr<const std::vector<millrace::record>>;

/// Loads as many records from the first shards as fit.
inline record_list load_records(const std::vector<std::string>& names, std::size_t max_bytes) {
  auto records = std::make_shared<std::vector<millrace::record>>();
  millrace::block_pool pool;
  std::size_t bytes = 0;
  for (const auto& name : names) {
    millrace::shard_reader shard(std::make_unique<millrace::file_source>(name), pool);
    while (bytes < max_bytes) {
      auto next = shard.next();
      if (!next) break;
      bytes += next->held_bytes();
      records->push_back(std::move(*next));
    }
  }
  return records;
}

/// Samples that are already in memory, encoded as in the shards: a source that waits for nothing.
class ram_records_source {
 public:
  using item = millrace::record;
  static constexpr bool same_every_pass = true;

  explicit ram_records_source(record_list records) : records_(std::move(records)) {}
  std::size_t shards() const noexcept { return 1; }

  struct reader {
    record_list records;
    std::size_t at = 0;
    std::optional<item> next() { return at < records->size() ? std::optional<item>((*records)[at++]) : std::nullopt; }
  };
  reader open(std::size_t, std::uint64_t) const { return {records_}; }

 private:
  record_list records_;
};

inline auto ram_records(record_list records) {
  return millrace::detail::flow<millrace::record, ram_records_source>{{}, ram_records_source(std::move(records)), 7};
}

namespace {

/// Pixels that are already decoded: rendering copies them.
struct decoded_row {
  using element = std::uint8_t;
  const std::vector<std::uint8_t>* pixels = nullptr;
  std::size_t side = 0;
  std::array<std::size_t, 3> shape() const { return {side, side, 3}; }
  void render(std::span<element> row) const { std::copy(pixels->begin(), pixels->end(), row.begin()); }
};
/// A row of that size that is never written.
struct blank_row {
  using element = std::uint8_t;
  std::size_t side = 0;
  std::array<std::size_t, 3> shape() const { return {side, side, 3}; }
  void render(std::span<element>) const {}
};

template <class Pixels>
struct labelled {
  Pixels pixels;
  std::int32_t label = 0;
};

struct run_set_up {
  unsigned workers = 1;
  std::size_t prefetch = 4;
  bool steps = true, inline_all = false;
};

}   // namespace

class bound_runs::flows {
 public:
  flows(const bound_settings& s, std::vector<std::string> names, accelerator& chip)
      : s_(s),
        names_(std::move(names)),
        chip_(&chip),
        records_(load_records(names_, std::size_t{256} << 20)),
        row_(s.side * s.side * 3, std::uint8_t{128}) {
    if (records_->empty())
      throw millrace::setup_error("the shards contain no sample", "Inspect them with examples/inspect");
  }

  /// The storage of the user's settings.
  const throttle& used() const noexcept { return s_.storage; }
  std::size_t batch_bytes() const noexcept { return s_.batch * row_.size(); }
  const std::vector<std::string>& names() const noexcept { return names_; }
  /// The mean size of a sample as it is read.
  double sample_bytes() const {
    double bytes = 0;
    for (const auto& r : *records_) bytes += static_cast<double>(r.held_bytes());
    return bytes / static_cast<double>(records_->size());
  }

 private:
  static double now_s() { return 1e-9 * static_cast<double>(millrace::detail::read_clock_ns(CLOCK_MONOTONIC)); }
  static std::int32_t label_of(const millrace::record& r) { return r["cls"].as<std::int32_t>(); }

  template <class Flow>
  auto with_device(Flow flow, const run_set_up& u) {
    millrace::to_device_options to{.device = millrace::host_device()};   // without steps nothing is copied
    if (u.steps) to = {.device = chip_->device(), .stream = chip_->stream()};
    return std::move(flow) | millrace::prefetch({.batches = u.prefetch}) | millrace::to_device(to);
  }
  template <class Source>
  auto decoding(Source source, const run_set_up& u) {
    using example = labelled<millrace::picture>;
    return with_device(
        std::move(source) | millrace::map([side = s_.side](const millrace::record& r, millrace::rng& random) {
          return example{millrace::jpeg(r["jpg;jpeg"]).random_resized_crop(side, random).random_flip(random),
                         label_of(r)};
        }) | millrace::batch<&example::pixels, &example::label>({.size = s_.batch}),
        u);
  }
  template <class Source>
  auto blank(Source source, const run_set_up& u) {
    using example = labelled<blank_row>;
    return with_device(std::move(source) | millrace::map([side = s_.side](const millrace::record& r) {
                         return example{{side}, label_of(r)};
                       }) | millrace::batch<&example::pixels, &example::label>({.size = s_.batch}),
                       u);
  }
  auto ready_flow(const run_set_up& u) {
    using example = labelled<decoded_row>;
    return with_device(ram_records(records_) | millrace::map([side = s_.side, row = &row_](const millrace::record& r) {
                         return example{{row, side}, label_of(r)};
                       }) | millrace::batch<&example::pixels, &example::label>({.size = s_.batch}),
                       u);
  }

  void step(bool steps) {
    if (!steps) return;
    chip_->launch_step(s_.step_s * s_.steps.factor(steps_++));
    chip_->wait();   // as a trainer that reads its loss
  }

  outcome alone(bool with_copy) {
    const std::vector<std::byte> batch(batch_bytes());
    const double start = now_s();
    std::size_t batches = 0;
    for (; batches < 3 || now_s() - start < s_.seconds / 2; ++batches) {
      if (with_copy) chip_->copy_and_wait(batch.data(), batch.size());
      step(true);
    }
    return {.samples_per_s = static_cast<double>(batches * s_.batch) / (now_s() - start)};
  }

  template <class Flow>
  outcome run_training(Flow flow, const run_set_up& u, bool count_reads = false) {
    millrace::session run{std::move(flow),
                          {.epochs = millrace::endless,
                           .threads = u.inline_all ? 0 : static_cast<int>(u.workers),
                           .io_threads = s_.io_threads,
                           // Small, so that it is full soon and reads keep pace with the trainer.
                           .read_ahead_bytes = std::size_t{16} << 20,
                           .notice = millrace::quiet}};
    // After the warm-up the rings are full, and all shards are at different positions.
    const std::size_t least_warm_up = u.prefetch + 4, least = 12;
    std::size_t batches = 0, warm_up = 0;
    double start = now_s();
    millrace::flow_statistics before;
    for (auto& b : run) {
      static_cast<void>(b);
      step(u.steps);
      ++batches;
      if (warm_up == 0 && batches >= least_warm_up && now_s() - start > s_.seconds / 2) {
        warm_up = batches;
        before = run.statistics();
        start = now_s();
      }
      if (warm_up > 0 && batches >= warm_up + least && now_s() - start > s_.seconds) break;
    }
    const double spent = now_s() - start;
    millrace::flow_statistics statistics = run.statistics() - before;
    double samples = static_cast<double>((batches - warm_up) * s_.batch);
    // Without steps all samples that were read count, not only those that were delivered.
    if (const auto* read = statistics.find(millrace::stage_kind::read); read && count_reads)
      samples = std::max(samples, read->samples());
    return {.samples_per_s = samples / spent,
            .statistics = std::move(statistics),
            .events = run.events(),
            .description = run.description()};
  }

 public:
  // Defined here, because they call functions with deduced return types.
  outcome run(const std::string& name) {
    const run_set_up usual{.workers = s_.workers, .prefetch = s_.prefetch};
    run_set_up without_steps = usual, inline_all = usual;
    without_steps.steps = false;
    inline_all.inline_all = true;
    throttle warm = s_.storage, cold = s_.storage;
    warm.cold = false;
    cold.cold = true;
    if (name == "step-only") return alone(false);
    if (name == "h2d+step") return alone(true);
    if (name == "ready") return run_training(ready_flow(usual), usual);
    if (name == "ram") return run_training(decoding(ram_records(records_), usual), usual);
    if (name == "cpu-only") return run_training(decoding(ram_records(records_), usual), without_steps);
    if (name == "no-transform") return run_training(blank(throttled_shards(names_, used()), usual), usual);
    if (name == "io-only") return run_training(blank(throttled_shards(names_, used()), usual), without_steps, true);
    if (name == "sync") return run_training(decoding(throttled_shards(names_, used()), usual), inline_all);
    return run_training(decoding(throttled_shards(names_, name == "cold" ? cold : warm), usual), usual);
  }

  /// Runs it as the user would, with other settings.
  outcome run_with(unsigned workers, std::size_t prefetch) {
    const run_set_up set_up{.workers = workers, .prefetch = prefetch};
    return run_training(decoding(throttled_shards(names_, used()), set_up), set_up);
  }

 private:
  const bound_settings s_;
  const std::vector<std::string> names_;
  accelerator* const chip_;
  const record_list records_;
  const std::vector<std::uint8_t> row_;
  std::size_t steps_ = 0;
};

bound_runs::bound_runs(const bound_settings& s, std::vector<std::string> names, accelerator& chip)
    : flows_(std::make_unique<flows>(s, std::move(names), chip)) {}
bound_runs::~bound_runs() = default;

std::vector<std::string> bound_runs::all() {
  return {"step-only", "h2d+step", "ready", "ram", "warm", "cold", "no-transform", "sync", "cpu-only", "io-only"};
}
outcome bound_runs::run(const std::string& name) { return flows_->run(name); }
outcome bound_runs::run_with(unsigned workers, std::size_t prefetch) { return flows_->run_with(workers, prefetch); }
const throttle& bound_runs::used() const noexcept { return flows_->used(); }
const std::vector<std::string>& bound_runs::names() const noexcept { return flows_->names(); }
double bound_runs::sample_bytes() const { return flows_->sample_bytes(); }

}   // namespace bench
