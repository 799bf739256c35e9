// resume: time to the first batch of 1.28 million samples in 1,281 shards: resumed, or a subset by keys
//
// Payloads are tiny, and all files are in the page cache. The clock starts before the shards are listed: list, indexes,
// plan, session. The first ticket is ready when the constructor of the session returns (it has read and mapped position
// 0 and allocated its batches); the first batch when next() returns. Times are wall time, the delay of a restart.
#include "harness.hpp"
#include "tar_sets.hpp"

#include <millrace/millrace.hpp>
#include <millrace/base/random.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/keys_from.hpp>

#include <fstream>

namespace mr = millrace;

namespace {

struct example {
  std::int32_t label;
};
example prepare(const mr::record& r) { return {static_cast<std::int32_t>(r["bin"].size())}; }

auto flow_over(const bench::tar_set& set, std::size_t window, const std::string& keys = {}) {
  std::optional<mr::key_list> only;
  if (!keys.empty()) only = mr::keys_from(keys);
  return mr::shards(set.folder, {.seed = 7, .only = std::move(only)}) | mr::shuffle({.window = window}) |
         mr::map(prepare) | mr::batch<&example::label>({.size = 192});
}

struct start_times {
  double source_ms = 0, ticket_ms = 0, batch_ms = 0, cpu_ms = 0;
};

start_times start(const bench::tar_set& set, std::size_t window, const std::string& from) {
  start_times t;
  const bench::clocks before = bench::now();
  auto flow = flow_over(set, window);
  t.source_ms = 1e3 * (bench::now() - before).wall_s;
  mr::session run{std::move(flow), {.epochs = 2, .notice = mr::quiet, .resume = from}};
  t.ticket_ms = 1e3 * (bench::now() - before).wall_s;
  const auto first = run.next();
  const bench::clocks spent = bench::now() - before;
  t.batch_ms = 1e3 * spent.wall_s;
  t.cpu_ms = 1e3 * spent.cpu_s;
  if (first.size() != 192) throw mr::setup_error("the first batch does not have 192 rows", "Check the data set");
  return t;
}

void measure(bench::harness& run, const bench::tar_set& set, std::size_t window) {
  // A position in the middle of the epoch, derived from one at its beginning.
  std::string from;
  {
    mr::session begin{flow_over(set, window), {.epochs = 2, .notice = mr::quiet}};
    mr::position middle = begin.next().position();
    middle.next_position = set.samples / 2 / 192 * 192;
    from = mr::to_text(middle);
  }
  std::vector<double> source, ticket, batch, cpu;
  for (int round = 0; round < (run.quick() ? 7 : 25); ++round) {
    const start_times t = start(set, window, from);
    source.push_back(t.source_ms);
    ticket.push_back(t.ticket_ms);
    batch.push_back(t.batch_ms);
    cpu.push_back(t.cpu_ms);
  }
  std::printf("\nwindow %zu (wall ms since the start): shards listed and indexes loaded %s, first ticket %s,\n"
              "  first batch %s; CPU until then %s\n",
              window, bench::spread(source, "%.1f").c_str(), bench::spread(ticket, "%.1f").c_str(),
              bench::spread(batch, "%.1f").c_str(), bench::spread(cpu, "%.1f").c_str());
  const std::string name = "resume_window_" + std::to_string(window);
  run.result(name + "_first_ticket", bench::median(ticket), "ms", bench::at_most(100));
  run.result(name + "_first_batch", bench::median(batch), "ms", bench::at_most(100));
}

// ---- a subset ----

/// Writes the keys of every hundredth sample in random order. Returns the file.
std::string write_keys(const bench::tar_set& set) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < set.samples; i += 100) keys.push_back(100'000'000 + i);
  mr::rng random({.seed = 3});
  for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.below(i)]);
  const std::string path = bench::data_folder() + "/every-hundredth.txt";
  std::ofstream out(path);
  for (const std::uint64_t key : keys) out << key << '\n';
  return path;
}

struct epoch_reads {
  double batch_ms = 0;                 // from the start to the first batch
  double samples = 0, megabytes = 0;   // of the epoch
};

epoch_reads read_epoch(const bench::tar_set& set, const std::string& keys) {
  epoch_reads reads;
  const bench::clocks before = bench::now();
  mr::session run{flow_over(set, 8192, keys), {.epochs = 1, .notice = mr::quiet}};
  for (auto batch = run.next(); batch; batch = run.next()) {
    if (reads.samples == 0) reads.batch_ms = 1e3 * (bench::now() - before).wall_s;
    reads.samples += static_cast<double>(batch.size());
  }
  for (const auto& stage : run.statistics().stages)
    if (stage.kind == mr::stage_kind::read) reads.megabytes = 1e-6 * static_cast<double>(stage.bytes);
  return reads;
}

void measure_choice(bench::harness& run, const bench::tar_set& set) {
  const std::string keys = write_keys(set);
  std::vector<double> all_ms, list_ms, subset_ms, more_ms;
  epoch_reads all, subset;
  for (int round = 0; round < (run.quick() ? 3 : 9); ++round) {
    all = read_epoch(set, {});
    const bench::clocks before = bench::now();
    static_cast<void>(mr::keys_from(keys));
    list_ms.push_back(1e3 * (bench::now() - before).wall_s);
    subset = read_epoch(set, keys);
    all_ms.push_back(all.batch_ms);
    subset_ms.push_back(subset.batch_ms);
    more_ms.push_back(subset.batch_ms - all.batch_ms - list_ms.back());
  }
  const double of_samples = subset.samples / all.samples, of_bytes = subset.megabytes / all.megabytes;
  std::printf("\none of a hundred samples, by keys (wall ms to the first batch): all %s, reading the list %s,\n"
              "  subset %s; an epoch of all reads %.1f MB for %.0f samples, of the subset %.2f MB for %.0f:\n"
              "  %.2f %% for %.2f %%\n",
              bench::spread(all_ms, "%.1f").c_str(), bench::spread(list_ms, "%.1f").c_str(),
              bench::spread(subset_ms, "%.1f").c_str(), all.megabytes, all.samples, subset.megabytes, subset.samples,
              100 * of_bytes, 100 * of_samples);
  run.result("choice_first_batch_later", bench::median(more_ms), "ms", bench::at_most(1'000));
  run.result("choice_bytes_of_samples", of_bytes / of_samples, "", bench::at_most(1.5));
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "resume");
    const auto set = bench::make_tar_set(
        {.name = "tiny", .shards = 1'281, .samples = 1'000, .payload_bytes = 8, .label = false});
    std::printf("%llu samples in %zu shards\n", static_cast<unsigned long long>(set.samples), set.shards.size());
    if (run.wants("middle"))
      for (const std::size_t window : {std::size_t{8192}, std::size_t{65'536}}) measure(run, set, window);
    if (run.wants("choice")) measure_choice(run, set);
    return run.finish();
  });
}
