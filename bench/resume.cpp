// resume: from nothing to the first batch in the middle of an epoch, 1.28 million samples in 1,281 shards with indexes
//
// Tiny payloads, everything in the page cache. The clock starts before the shards are listed: list, indexes, plan,
// session. The first ticket is there when the constructor of the session returns (it has read and mapped position 0
// and allocated its batches); the first batch when next() does. Wall time, because that is what a restart waits for.
#include "harness.hpp"
#include "tar_sets.hpp"

#include <millrace/millrace.hpp>
#include <millrace/sources/indexed_shards.hpp>

namespace mr = millrace;

namespace {

struct example {
  std::int32_t label;
};
example prepare(const mr::record& r) { return {static_cast<std::int32_t>(r["bin"].size())}; }

auto flow_over(const bench::tar_set& set, std::size_t window) {
  return mr::indexed_shards(set.folder, {.seed = 7}) | mr::shuffle({.window = window}) | mr::map(prepare) |
         mr::batch<&example::label>({.size = 192});
}

struct start_times {
  double source_ms = 0, ticket_ms = 0, batch_ms = 0, cpu_ms = 0;
};

start_times start(const bench::tar_set& set, std::size_t window, const std::string& from) {
  start_times t;
  const bench::clocks before = bench::now();
  auto flow = flow_over(set, window);
  t.source_ms = 1e3 * (bench::now() - before).wall_s;
  mr::session run{std::move(flow), {.epochs = 2, .announce = false, .resume = from}};
  t.ticket_ms = 1e3 * (bench::now() - before).wall_s;
  const auto first = run.next();
  const bench::clocks spent = bench::now() - before;
  t.batch_ms = 1e3 * spent.wall_s;
  t.cpu_ms = 1e3 * spent.cpu_s;
  if (first.size() != 192) throw mr::setup_error("the first batch is no batch", "Look at the data set");
  return t;
}

void measure(bench::harness& run, const bench::tar_set& set, std::size_t window) {
  // A position in the middle of the epoch is made from one at its beginning.
  std::string from;
  {
    mr::session begin{flow_over(set, window), {.epochs = 2, .announce = false}};
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
  std::printf("\nwindow %zu (wall ms since the start): shards listed and indexes known %s, first ticket %s,\n"
              "  first batch %s; CPU until then %s\n",
              window, bench::spread(source, "%.1f").c_str(), bench::spread(ticket, "%.1f").c_str(),
              bench::spread(batch, "%.1f").c_str(), bench::spread(cpu, "%.1f").c_str());
  const std::string name = "resume_window_" + std::to_string(window);
  run.result(name + "_first_ticket", bench::median(ticket), "ms", bench::at_most(100));
  run.result(name + "_first_batch", bench::median(batch), "ms", bench::at_most(100));
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "resume");
    const auto set = bench::make_tar_set(
        {.name = "tiny", .shards = 1'281, .samples = 1'000, .payload_bytes = 8, .label = false});
    std::printf("%llu samples in %zu shards\n", static_cast<unsigned long long>(set.samples), set.shards.size());
    for (const std::size_t window : {std::size_t{8192}, std::size_t{65'536}}) measure(run, set, window);
    return run.finish();
  });
}
