// Writes the reports of a simulated run, for page_test.py: FOLDER/report.html and so on.
#include <millrace/report/print/write_reports.hpp>
#include <millrace/report/simulate/simulation.hpp>

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
  s.figures.usable_cores = 16;
  s.figures.storage_bytes = s.figures.stages[0].bytes;
  s.figures.stages[2].cpu_ns = s.figures.stages[2].busy_ns / 100 * 99;
  s.figures.queues = {{.name = "ready batches", .unit = "slots", .mean = 0.3, .bound = 5}};
  mr::run_report r = mr::report_of(s.figures, std::move(s.events));
  r.title = "A simulated run <of 300 batches> & its \"report\"";
  r.origin = {.program = "sample_report", .date = "2026-11-23 08:36:04 UTC",
              .command = "build/sample_report --data 's-{000..146}.tar' --note '<b>' --name " + std::string(120, 'n'),
              .machine = "AMD EPYC, 135 GB, Linux 6.1.0-28-amd64 on node7"};
  r.kept = {{.change = "6 -> 7 workers", .predicted_samples_per_s = 2'900, .measured_samples_per_s = 2'880}};
  r.facts = {{"commit", "20fbe65"}, {"a very long name", std::string(300, 'x')}};
  mr::detail::add_counts(r, {{"JPEGs by the own decoder, several at once", 17'900},
                     {"JPEGs by the own decoder, alone", 20},
                     {"JPEGs by libjpeg: sampling", 3},
                     {"JPEGs by libjpeg: progressive or arithmetic", 1'277},
                     {"progressive JPEGs", 1'270},
                     {"damaged JPEGs accepted", 2},
                     {"warnings of libjpeg", 7},
                     {"bytes of JPEGs", 2'000'000'000},
                     {"pixels of JPEGs", 8'000'000'000},
                     {"dot files passed over", 12},
                     {"metadata members passed over", 1'500}});
  mr::write_reports(r, argv[1]);
}
