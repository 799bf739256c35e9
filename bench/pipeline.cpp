// pipeline: from shards of photographs to batches, compared with a bare loop over the same reads and pixels
//
// Both sides read the same shards with the same reader, draw the same crops and render the same pixels. The bare loop
// does so in plain threads, each with its own shards, without engine, order, shuffle or trainer. The difference of the
// ratio from 1 is the cost of those. Only the steady state counts: a warm-up first uses every buffer.
#include "harness.hpp"
#include "photo_example.hpp"
#include "photo_sets.hpp"
#include "threads.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/millrace.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/shards.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

namespace mr = millrace;

namespace {

using example = bench::photo_example;

using both_columns = mr::detail::columns<&example::pixels, &example::label>;
constexpr std::uint64_t seed = 7;
constexpr std::size_t row_bytes = std::size_t{224} * 224 * 3;

/// A checksum of the delivered samples that does not depend on their order, so it is the same on both sides. It reads
/// every byte, so that no work can be omitted, and costs both sides the same.
struct checksum {
  std::uint64_t words = 0, labels = 0, rows = 0;

  /// Not inlined, or the compiler could keep the sum in a register on one side and in memory on the other.
  [[gnu::noinline]] void add(const std::uint8_t* pixels, const std::int32_t* label, std::size_t count) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count * row_bytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, pixels + i, sizeof word);
      sum += word;
    }
    words += sum;
    for (std::size_t i = 0; i < count; ++i) labels += static_cast<std::uint64_t>(label[i]);
    rows += count;
  }
  void add(const checksum& other) {
    words += other.words;
    labels += other.labels;
    rows += other.rows;
  }
  friend bool operator==(const checksum&, const checksum&) = default;
};

struct task {
  const bench::photo_set& set;
  std::size_t batch;
  unsigned workers;
  std::uint64_t warm_epochs, epochs;   // the counted ones follow the warm-up
  bool by_part = false;                // measures the parts too, so the bare loop reads the clock more often
};

/// CPU seconds. In the pipeline those of I/O threads, workers and trainer, including their communication.
struct parts {
  double reading_s = 0, rendering_s = 0, sum_s = 0;
};

struct outcome {
  double cpu_s = 0, wall_s = 0;
  checksum sum{};
  parts spent{};
};

// ---- the library ----

outcome run_pipeline(const task& t) {
  mr::session run{mr::shards(t.set.names, {.seed = seed, .index = mr::index::off}) | mr::shuffle({.window = 512}) |
                      mr::map(bench::prepare_photo) | mr::batch<&example::pixels, &example::label>({.size = t.batch}),
                  {.epochs = mr::endless,
                   .threads = static_cast<int>(t.workers),
                   // Full from the warm-up on, so that reads keep pace with rendering while the clock runs.
                   .read_ahead_bytes = std::size_t{24} << 20,
                   .notice = mr::quiet}};
  const auto sum_of = [&](std::uint64_t epochs) {
    checksum sum;
    for (std::uint64_t i = 0; i < epochs * (t.set.samples / t.batch); ++i) {
      const auto b = run.next();
      sum.add(b.get<&example::pixels>().host().data(), b.get<&example::label>().host().data(), b.size());
    }
    return sum;
  };
  outcome result;
  // As in the counted part, the workers already render the next batch while the trainer sums its last one.
  static_cast<void>(sum_of(t.warm_epochs));
  const auto threads = bench::threads_now();
  const bench::clocks before = bench::now();
  result.sum = sum_of(t.epochs);
  const bench::clocks spent = bench::now() - before;
  result.cpu_s = spent.cpu_s;
  result.wall_s = spent.wall_s;
  const bench::session_times by_thread = bench::session_times_since(threads);
  result.spent = {.reading_s = 1e-9 * by_thread.reading_ns,
                  .rendering_s = 1e-9 * by_thread.workers_ns,
                  .sum_s = 1e-9 * by_thread.trainer_ns};
  return result;
}

// ---- the bare loop ----

/// The state of one thread: a buffer of one batch that it writes repeatedly. It is the same kind of memory as slots,
/// because rows that do not begin at multiples of 32 bytes are rendered by slower code.
struct bare_worker {
  struct host_deleter {
    void operator()(std::byte* memory) const noexcept { mr::host_backend().free_host(memory); }
  };
  mr::scratch memory{};
  both_columns layout{};
  std::unique_ptr<std::byte, host_deleter> rows{};
  checksum sum{};
  parts spent{};

  /// Calls `act`, and adds the time to one of the parts if they are requested.
  template <class Act>
  auto timed(const task& t, double parts::* part, const Act& act) {
    if (!t.by_part) return act();
    struct clock {
      double& to;
      double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
      ~clock() { to += bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before; }
    } const running{spent.*part};
    return act();
  }
};

/// Reads one shard and renders its samples, in groups of the size that the columns prefer.
void render_shard(const task& t, std::size_t shard, std::uint64_t epoch, mr::block_pool& pool, bare_worker& worker) {
  constexpr std::size_t together = both_columns::together;
  mr::shard_reader reader(std::make_unique<mr::file_source>(t.set.names[shard]), pool);
  std::array<std::optional<example>, together> items;
  std::array<const example*, together> group;
  std::size_t in_group = 0, row = 0;
  std::uint64_t index = 0;
  const auto add_rows = [&] {
    const both_columns::delivered target{.base = worker.rows.get(), .rows = row};
    const auto pixels = worker.layout.view<&example::pixels>(target);
    const auto labels = worker.layout.view<&example::label>(target);
    worker.timed(t, &parts::sum_s, [&] { worker.sum.add(pixels.data, labels.data, row); });
    row = 0;
  };
  const auto render = [&] {
    worker.timed(t, &parts::rendering_s, [&] {
      worker.layout.render(std::span(group).first(in_group), worker.rows.get(), row, worker.memory);
    });
    row += in_group;
    in_group = 0;
    if (row == t.batch) add_rows();
  };
  while (auto record = worker.timed(t, &parts::reading_s, [&] { return reader.next(); })) {
    mr::rng random({.seed = seed, .epoch = epoch, .sample = mr::detail::sample_id(shard, index++), .stage = 0});
    items[in_group].emplace(bench::prepare_photo(*record, random));
    if (!worker.rows) {
      worker.layout.fix_shapes(*items[in_group], t.batch);
      worker.rows.reset(static_cast<std::byte*>(mr::host_backend().allocate_host(worker.layout.batch_bytes())));
    }
    group[in_group] = &*items[in_group];
    if (++in_group == together) render();
  }
  if (in_group > 0) render();
  add_rows();
}

outcome run_bare(const task& t) {
  mr::block_pool pool;
  std::vector<bare_worker> workers(t.workers);
  const auto run_epochs = [&](std::uint64_t first, std::uint64_t end) {
    for (auto& s : workers) s.sum = {}, s.spent = {};
    std::atomic<std::uint64_t> next{first * t.set.names.size()};
    const auto work = [&](bare_worker& worker) {
      for (std::uint64_t i = next++; i < end * t.set.names.size(); i = next++)
        render_shard(t, i % t.set.names.size(), i / t.set.names.size(), pool, worker);
    };
    std::vector<std::thread> threads;
    for (auto& s : workers) threads.emplace_back([&] { work(s); });
    for (auto& thread : threads) thread.join();
  };
  run_epochs(0, t.warm_epochs);
  const bench::clocks before = bench::now();
  run_epochs(t.warm_epochs, t.warm_epochs + t.epochs);
  const bench::clocks spent = bench::now() - before;
  outcome result{.cpu_s = spent.cpu_s, .wall_s = spent.wall_s};
  for (const auto& s : workers) {
    result.sum.add(s.sum);
    result.spent.reading_s += s.spent.reading_s;
    result.spent.rendering_s += s.spent.rendering_s;
    result.spent.sum_s += s.spent.sum_s;
  }
  return result;
}

// ---- comparison ----

/// Prints the CPU time of each part on both sides.
void compare_parts(task t, int rounds) {
  t.by_part = true;
  const double us = 1e6 / static_cast<double>(t.epochs * t.set.samples);
  std::array<std::vector<double>, 6> all;
  for (int i = 0; i < rounds; ++i) {
    const parts pipeline = run_pipeline(t).spent, bare = run_bare(t).spent;
    const std::array<double, 6> now{pipeline.reading_s, bare.reading_s, pipeline.rendering_s,
                                    bare.rendering_s,   pipeline.sum_s, bare.sum_s};
    for (std::size_t k = 0; k < now.size(); ++k) all[k].push_back(us * now[k]);
  }
  std::printf("  by part, CPU us per image, least of %d rounds, pipeline and bare loop:", rounds);
  for (std::size_t k = 0; k < 3; ++k)
    std::printf(" %s %.1f, %.1f%s", std::array{"reading", "rendering", "sum"}[k], std::ranges::min(all[2 * k]),
                std::ranges::min(all[2 * k + 1]), k < 2 ? ";" : "\n");
}

void compare(bench::harness& run, const char* name, const task& t, int rounds) {
  const auto samples = static_cast<double>(t.epochs * t.set.samples);
  std::vector<double> ratio, cpu, bare_cpu, rate, bare_rate;
  checksum sum;
  for (int i = 0; i < rounds; ++i) {
    outcome pipeline, bare;
    // The second one may run on a warmer or a more crowded machine.
    if (i % 2 == 0) pipeline = run_pipeline(t);
    bare = run_bare(t);
    if (i % 2 == 1) pipeline = run_pipeline(t);
    if (!(pipeline.sum == bare.sum))
      throw mr::setup_error("the pipeline and the bare loop rendered different pixels", "Compare their rows");
    sum = pipeline.sum;
    ratio.push_back(bare.cpu_s / pipeline.cpu_s);
    cpu.push_back(1e3 * pipeline.cpu_s / samples);
    bare_cpu.push_back(1e3 * bare.cpu_s / samples);
    rate.push_back(samples / pipeline.wall_s);
    bare_rate.push_back(samples / bare.wall_s);
  }
  std::printf("\n%s, batch %zu, %u worker%s: %.0f images of %.1f kB a round, %d rounds, checksum %016llx\n", name,
              t.batch, t.workers, t.workers == 1 ? "" : "s", samples, t.set.file_bytes / 1e3, rounds,
              static_cast<unsigned long long>(sum.words + sum.labels));
  std::printf("  pipeline  %s CPU s per 1,000 images, %s images/s\n", bench::spread(cpu).c_str(),
              bench::spread(rate, "%.0f").c_str());
  std::printf("  bare loop %s CPU s per 1,000 images, %s images/s\n", bench::spread(bare_cpu).c_str(),
              bench::spread(bare_rate, "%.0f").c_str());
  const double of_least = std::ranges::min(bare_cpu) / std::ranges::min(cpu);
  std::printf("  bare loop's CPU time in the pipeline's: %s; of the least of each: %.3g\n",
              bench::spread(ratio).c_str(), of_least);
  compare_parts(t, rounds / 4 + 1);
  const std::string which = std::string(name) + "_batch_" + std::to_string(t.batch) + "_workers_" +
                            std::to_string(t.workers);
  run.result("pipeline_cpu_" + which, bench::median(cpu), "s/1000_images");
  run.result("bare_cpu_" + which, bench::median(bare_cpu), "s/1000_images");
  run.result("pipeline_rate_" + which, bench::median(rate), "images/s");
  run.result("pipeline_share_" + which, 100 * bench::median(ratio), "%", bench::at_least(95));
  run.result("pipeline_share_of_least_" + which, 100 * of_least, "%", bench::at_least(98));
}

// ---- checksums ----

/// As shards() with an index, optionally without checksums.
class indexed_source {
 public:
  using item = mr::record;
  using planned = mr::detail::indexed_run<mr::detail::shard_data>;

  indexed_source(const bench::photo_set& set, bool checksums)
      : data_(std::make_shared<mr::detail::shard_data>(
            set.names, mr::detail::shard_data_options{.reader = {.checksums = checksums}})) {}

  std::unique_ptr<planned> plan(const mr::detail::indexed_run_options& o) const {
    return std::make_unique<planned>(data_, o);
  }
  std::size_t shards() const noexcept { return data_->counts().size(); }
  typename planned::source_type::reader open(std::size_t shard, std::uint64_t epoch) const;   // not called

 private:
  std::shared_ptr<mr::detail::shard_data> data_;
};

double cpu_with(const task& t, bool checksums, mr::damage policy = mr::damage::fail) {
  auto flow = mr::detail::flow<mr::record, indexed_source>{{}, indexed_source(t.set, checksums), seed} |
              mr::shuffle({.window = 512}) | mr::map(bench::prepare_photo) |
              mr::batch<&example::pixels, &example::label>({.size = t.batch});
  mr::session run{std::move(flow),
                  {.epochs = mr::endless,
                   .threads = static_cast<int>(t.workers),
                   .read_ahead_bytes = std::size_t{24} << 20,
                   .notice = mr::quiet,
                   .on_damage = {.policy = policy}}};
  const std::uint64_t batches = t.set.samples / t.batch;
  for (std::uint64_t i = 0; i < t.warm_epochs * batches; ++i) static_cast<void>(run.next());   // records all checksums
  const bench::clocks before = bench::now();
  for (std::uint64_t i = 0; i < t.epochs * batches; ++i) static_cast<void>(run.next());
  return (bench::now() - before).cpu_s;
}

/// The same run with an index, with all checksums verified and with none; and the checksums alone.
void measure_checksums(bench::harness& run, const task& t, int rounds) {
  const auto samples = static_cast<double>(t.epochs * t.set.samples);
  const std::vector<std::byte> file(static_cast<std::size_t>(t.set.file_bytes), std::byte{5});
  std::vector<double> more, cost, alone;
  for (int i = 0; i < rounds; ++i) {
    const bool first = i % 2 == 0;
    const double one = cpu_with(t, first), other = cpu_with(t, !first);
    const double with = first ? one : other, without = first ? other : one;
    more.push_back(100 * (with / without - 1));
    cost.push_back(1e6 * with / samples);
    const bench::clocks before = bench::now();
    std::uint32_t sum = 0;
    for (int times = 0; times < 1'000; ++times) sum = mr::crc32c(file, sum);
    alone.push_back(1e3 * (bench::now() - before).cpu_s);
    if (sum == 1) std::printf("never\n");   // keeps the computation
  }
  const double share = 100 * bench::median(alone) / bench::median(cost);
  std::printf("\nchecksums, set M with an index, batch %zu, %u worker: %d pairs with and without\n", t.batch, t.workers,
              rounds);
  std::printf("  %s CPU us per image with them; %s %% more than without\n", bench::spread(cost).c_str(),
              bench::spread(more, "%.1f").c_str());
  std::printf("  a checksum of %.1f kB in the cache costs %s us, %.2f %% of that\n", t.set.file_bytes / 1e3,
              bench::spread(alone).c_str(), share);
  run.result("checksums_more_cpu", bench::median(more), "%", bench::at_most(2));
  run.result("checksums_alone", share, "%", bench::at_most(2));
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "pipeline");
    for (const auto& recipe : bench::photo_sets) {
      if (!run.wants(recipe.name) || (run.quick() && std::string_view(recipe.name) != "M")) continue;
      const bench::photo_set set = bench::make_photo_set(recipe);
      for (const std::size_t batch : {std::size_t{256}, std::size_t{64}})
        for (const unsigned workers : {1U, 2U}) {
          if (batch == 64 && (run.quick() || std::string_view(recipe.name) != "M")) continue;
          compare(run, recipe.name, {.set = set, .batch = batch, .workers = workers, .warm_epochs = 2, .epochs = 2},
                  run.quick() ? 5 : 40);   // many short rounds: a neighbor on the same core runs for seconds
        }
    }
    if (run.wants("checksums")) {
      const bench::photo_set set = bench::make_photo_set(bench::photo_sets[0]);
      measure_checksums(run, {.set = set, .batch = 256, .workers = 1, .warm_epochs = 2, .epochs = 2},
                        run.quick() ? 5 : 15);
    }
    if (run.wants("replace")) {
      const bench::photo_set set = bench::make_photo_set(bench::photo_sets[0]);
      const task t{.set = set, .batch = 256, .workers = 1, .warm_epochs = 2, .epochs = 2};
      std::printf("\nset %s with an index, batch %zu, %u worker\n", bench::photo_sets[0].name, t.batch, t.workers);
      run.result("pipeline_replace_at_most",
                 bench::compare_in_pairs(
                     "damage replaced against an error, clean data", run.quick() ? 6 : 20,
                     [&] { return cpu_with(t, true, mr::damage::replace); }, [&] { return cpu_with(t, true); }),
                 "of an error", bench::at_most(1.02));
    }
    return run.finish();
  });
}
