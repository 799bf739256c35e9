// Writes the reports of a simulated run, for page_test.py: FOLDER/report.html and so on.
#include <millrace/image/values/jpeg_refusal.hpp>
#include <millrace/report/print/write_reports.hpp>
#include <millrace/report/simulate/what_if.hpp>

namespace mr = millrace;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using times = mr::detail::empirical_distribution;
  mr::detail::pipeline_model m{.io_threads = 4, .workers = 7, .host_slots = 5, .device_slots = 3, .batch_samples = 64,
                       .read_ahead_bytes = 32'000'000, .samples_per_read = 2, .sample_bytes = 110'000,
                       .batch_bytes = 9'633'792, .contention = 0.3, .read_ns = times::around(1.1e6, 0.6),
                       .unpack_ns = times::around(2e5, 0.3), .work_ns = times::around(2.4e6, 0.5),
                       .copy_ns = times::around(9e5, 0.1), .step_ns = times::around(14.2e6, 0.05),
                       .phases = {{"decode", 0.78}, {"resize", 0.13}, {"map", 0.09}}, .batches = 300,
                       .with_timeline = true};
  mr::detail::simulated s = mr::detail::simulate(m);
  s.statistics.usable_cores = 16;
  s.statistics.storage_bytes = s.statistics.stages[0].bytes;
  s.statistics.stages[2].cpu_ns = s.statistics.stages[2].busy_ns / 100 * 99;
  s.statistics.queues = {{.name = "ready batches", .unit = "slots", .mean = 0.3, .bound = 5}};
  mr::run_report r = mr::report_of(s.statistics, std::move(s.events));
  r.title = "A simulated run <of 300 batches> & its \"report\"";
  r.origin = {.program = "sample_report", .date = "2026-11-23 08:36:04 UTC",
              .command = "build/sample_report --data 's-{000..146}.tar' --note '<b>' --name " + std::string(120, 'n'),
              .machine = "AMD EPYC, 135 GB, Linux 6.1.0-28-amd64 on node7"};
  r.predictions = {{.change = "6 -> 7 workers", .predicted_samples_per_s = 2'900, .measured_samples_per_s = 2'880}};
  r.facts = {{"commit", "20fbe65"}, {"a very long name", std::string(300, 'x')}};
  using mr::detail::event_name;
  using mr::detail::event_of;
  std::vector<mr::event_count> counts{{"dot files passed over", 12}, {"metadata members passed over", 1'500}};
  for (const auto& [name, times] : std::initializer_list<std::pair<event_name, std::uint64_t>>{
           {event_name::own_together, 17'900}, {event_name::own_alone, 20},
           {event_of(mr::jpeg_refusal::sampling), 3}, {event_of(mr::jpeg_refusal::process), 1'277},
           {event_name::progressive, 1'270}, {event_name::damaged, 2}, {event_name::warnings, 7},
           {event_name::bytes, 2'000'000'000}, {event_name::pixels, 8'000'000'000}})
    counts.push_back({mr::detail::text_of(name), times});
  mr::detail::add_run_counts(r, counts);
  mr::write_reports(r, argv[1]);
}
