// what_if: predictions from a recorded run for other settings, compared with real runs with those settings
//
//   sh bench/run.sh what_if --seed 3                       # 20 settings, drawn from that seed
//
// A setting is a base run and a change of it: other workers, I/O threads, prefetched batches, batch, storage speed or
// step time. The prediction uses only the base's statistics (report/simulate/what_if.hpp). The changed run is run as
// well; both alternate for several rounds, and medians are compared. In twelve settings all stages sleep
// (sleeping_flow.hpp); eight decode images (bound_variants.hpp) from throttled storage for steps of given length.
#include "harness.hpp"
#include "parts/bound_data.hpp"
#include "parts/bound_variants.hpp"
#include "parts/emulated_accelerator.hpp"
#include "parts/sleeping_flow.hpp"

#include <millrace/report/simulate/what_if.hpp>

#include <array>
#include <functional>

namespace mr = millrace;

namespace {

enum class change { workers, io_threads, prefetch, batch, storage, step };
constexpr change all_changes[] = {change::workers, change::io_threads, change::prefetch,
                                  change::batch,   change::storage,    change::step};
/// The stage that should limit the base, so that the change has an effect.
enum stage : std::size_t { reading, working, copying, stepping };

struct setting {
  std::string what{};
  mr::what_if_change query{};
  std::function<mr::flow_statistics(std::uint64_t round)> base{}, changed{};
};

std::string text_of(const char* what, double from, double to) {
  char text[80];
  std::snprintf(text, sizeof text, "%s %.3g -> %.3g", what, from, to);
  return text;
}

/// Returns a different number, at least 1.
template <class Number>
Number other(Number now, mr::rng& random) {
  const auto up = static_cast<Number>(now + 1 + random.below(4));
  return now > 2 && random.chance(0.3) ? static_cast<Number>(now - 1) : up;
}
double factor(mr::rng& random) { return random.chance(0.5) ? random.uniform(0.3, 0.7) : random.uniform(1.5, 3); }

/// Applies the change to `s` and `query`; `query` contains storage and step as factors. Returns its description.
template <class Settings>
std::string apply(Settings& s, change what, mr::rng& random, mr::what_if_change& query) {
  const Settings was = s;
  switch (what) {
    case change::workers:
      s.workers = other(s.workers, random);
      query.workers = s.workers;
      return text_of("workers", static_cast<double>(was.workers), static_cast<double>(s.workers));
    case change::io_threads:
      s.io_threads = other(s.io_threads, random);
      query.io_threads = s.io_threads;
      return text_of("I/O threads", static_cast<double>(was.io_threads), static_cast<double>(s.io_threads));
    case change::prefetch:
      s.prefetch = other(s.prefetch, random);
      query.prefetch = s.prefetch;
      return text_of("prefetched batches", static_cast<double>(was.prefetch), static_cast<double>(s.prefetch));
    case change::batch:
      s.batch = random.chance(0.5) ? s.batch * 2 : s.batch / 2;
      query.batch = s.batch;
      return text_of("batch", static_cast<double>(was.batch), static_cast<double>(s.batch));
    case change::storage: query.storage_speed = factor(random); return text_of("storage speed", 1, query.storage_speed);
    case change::step: break;
  }
  query.step_time = factor(random);
  return text_of("step time", 1, query.step_time);
}

/// Stages that sleep. The changed stage is the bottleneck; the others are 1.1 to 2.5 times faster.
setting asleep(change what, mr::rng& random, double seconds) {
  bench::sleeping_settings s;
  s.io_threads = 1 + random.below(5);
  s.workers = 1 + random.below(6);
  s.prefetch = what == change::prefetch ? 1 : 2 + random.below(3);
  s.device_slots = random.chance(0.5) ? 2 : 0;
  s.batch = 8U << random.below(3);
  s.samples_per_read = 1 + random.below(3);
  s.reads_per_shard = 4U << random.below(3);
  s.one_pipe = random.chance(0.4);
  s.spread = what == change::prefetch ? 0.9 : random.uniform(0.1, 0.6);
  std::size_t slowest = random.below(4);
  if (what == change::workers) slowest = working;
  if (what == change::io_threads || what == change::storage) slowest = reading;
  if (what == change::step || what == change::batch) slowest = stepping;
  std::array<double, 4> ns{};   // of a sample
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] = 2e6 / (i == slowest ? 1 : random.uniform(1.1, 2.5));
  const auto rows = static_cast<double>(s.batch);
  const double read_ns = ns[reading] * static_cast<double>(s.samples_per_read);
  const bool unpacks = !s.one_pipe && random.chance(0.3);
  s.read_ns = (unpacks ? 0.7 : 1) * read_ns * (s.one_pipe ? 1 : static_cast<double>(s.io_threads));
  if (unpacks) s.unpack_ns = 0.3 * read_ns * static_cast<double>(s.io_threads);
  s.work_ns = ns[working] * static_cast<double>(s.workers);
  if (s.device_slots > 0) s.copy_ns = ns[copying] * rows;
  // Half of a step does not depend on the batch size.
  const double fixed_ns = 0.5 * ns[stepping] * rows;
  s.step_ns = ns[stepping] * rows;

  bench::sleeping_settings then = s;
  setting result;
  result.what = "asleep:  " + apply(then, what, random, result.query);
  if (result.query.prefetch && s.device_slots == 0) ++*result.query.prefetch;   // the step's batch occupies a slot
  then.read_ns /= result.query.storage_speed;
  then.step_ns *= result.query.step_time;
  if (result.query.batch) {
    const double larger = static_cast<double>(then.batch) / rows;
    result.query.fixed_step_ns = fixed_ns;
    then.step_ns = fixed_ns + (s.step_ns - fixed_ns) * larger;
    then.copy_ns *= larger;
  }
  const auto run = [seconds](bench::sleeping_settings now, std::uint64_t seed) {
    now.seed = seed;
    now.batches = std::max<std::size_t>(30, static_cast<std::size_t>(seconds / 2e-3) / now.batch);
    return bench::run_asleep(now);
  };
  const std::uint64_t seed = random.bits();
  result.base = [=](std::uint64_t round) { return run(s, seed + round); };
  result.changed = [=](std::uint64_t round) { return run(then, seed + round); };   // a sample costs the same
  return result;
}

/// Decodes images from a storage with low bandwidth, high latency, or neither.
setting decoding(change what, mr::rng& random, const bench::bound_settings& common) {
  bench::bound_settings s = common;
  s.workers = 1 + static_cast<unsigned>(random.below(2));
  s.io_threads = 1 + static_cast<unsigned>(random.below(4));
  s.prefetch = what == change::prefetch ? 1 : 2 + random.below(3);
  s.batch = 32U << random.below(2);
  const bool reads_slowly = what == change::io_threads || what == change::storage || random.chance(0.3);
  if (reads_slowly && random.chance(0.5)) s.storage.bytes_per_second = random.uniform(10e6, 25e6);
  else if (reads_slowly) s.storage.latency_ns = static_cast<std::uint64_t>(random.uniform(30e6, 90e6));
  s.storage.jitter = 0.3;
  const bool steps_slowly = what == change::step || what == change::batch;
  s.step_s = static_cast<double>(s.batch) * (steps_slowly ? random.uniform(2e-3, 4e-3) : random.uniform(2e-4, 1e-3));

  bench::bound_settings then = s;
  setting result;
  result.what = "pictures: " + apply(then, what, random, result.query);
  then.storage.bytes_per_second *= result.query.storage_speed;
  then.storage.latency_ns = static_cast<std::uint64_t>(static_cast<double>(s.storage.latency_ns) /
                                                       result.query.storage_speed);
  then.step_s *= result.query.step_time * static_cast<double>(then.batch) / static_cast<double>(s.batch);
  const auto run = [](const bench::bound_settings& now) {
    bench::emulated_accelerator chip;
    return bench::bound_runs(now, bench::find_data(now.data), chip).run_with(now.workers, now.prefetch).statistics;
  };
  result.base = [=](std::uint64_t) { return run(s); };
  result.changed = [=](std::uint64_t) { return run(then); };
  return result;
}

/// Samples per second.
struct comparison {
  std::vector<double> before{}, predicted{}, measured{};

  double error() const { return std::abs(bench::median(predicted) / bench::median(measured) - 1); }
  /// The error of predicting no change.
  double without() const { return std::abs(bench::median(before) / bench::median(measured) - 1); }
};

comparison compare(const setting& s, unsigned rounds) {
  comparison c;
  for (unsigned round = 0; round < rounds; ++round) {
    const mr::flow_statistics base = s.base(round);
    c.before.push_back(base.samples_per_s());
    c.predicted.push_back(mr::what_if(base, s.query).samples_per_s);
    c.measured.push_back(s.changed(round).samples_per_s());
  }
  return c;
}

int measure(int argc, char** argv) {
  command_line args(argc, argv,
                    "usage: what_if [--seed N] [--rounds N] [--only asleep|pictures] [--quick] [--json FILE]");
  const bool quick = args.flag("--quick");
  const auto seed = static_cast<std::uint64_t>(args.number("--seed", 2U));
  const unsigned rounds = args.number("--rounds", quick ? 1U : 3U);
  const std::string only = args.text("--only", ""), json = args.text("--json", "");
  if (!args.rest().empty()) args.refuse("all arguments have a name");
  std::string words[] = {argv[0], "--json", json};
  char* common[] = {words[0].data(), words[1].data(), words[2].data()};
  bench::harness run(json.empty() ? 1 : 3, common, "what_if");

  bench::bound_settings decoding_settings;
  decoding_settings.seconds = quick ? 1 : 2.5;
  std::vector<setting> all;
  mr::rng random({.seed = seed});
  for (int i = 0; i < 20; ++i) {
    const change what = all_changes[i % 6];
    const bool sleeps = i < 12;
    setting s = sleeps ? asleep(what, random, quick ? 1 : 2) : decoding(what, random, decoding_settings);
    if (only.empty() || (only == "asleep") == sleeps) all.push_back(std::move(s));
  }
  std::vector<double> errors, without;
  std::printf("\nsamples per second: before, predicted, measured\n");
  for (const setting& s : all) {
    const comparison c = compare(s, rounds);
    errors.push_back(100 * c.error());
    without.push_back(100 * c.without());
    std::printf("  %-42s %6.0f  %6.0f  %-24s error %4.1f %%\n", s.what.c_str(), bench::median(c.before),
                bench::median(c.predicted), bench::spread(c.measured, "%.0f").c_str(), errors.back());
  }
  std::printf("\nerrors of %zu predictions: median %.1f %%, 9 of 10 below %.1f %%; of predicting no change: "
              "%.1f and %.1f %%\n",
              errors.size(), bench::median(errors), bench::quantile(errors, 0.9), bench::median(without),
              bench::quantile(without, 0.9));
  run.result("what_if_error_median", bench::median(errors), "%", bench::at_most(10));
  run.result("what_if_error_p90", bench::quantile(errors, 0.9), "%");
  run.result("nothing_changes_error_median", bench::median(without), "%");
  return run.finish();
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] { return measure(argc, argv); });
}
