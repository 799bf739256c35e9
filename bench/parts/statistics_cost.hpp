// The cost of run statistics: the time of each record, measured alone, times the number of records of a run.
//
//   const bench::statistics_cost c = bench::measure_statistics_cost(2);       // seconds of a run
//   c.share();          // of the run's CPU time
//   c.query_share();    // the same for statistics() after every 20 batches, as tuning calls it
//
// The run: images of shapes in memory, random_resized_crop to 224, flip, batches of 64, all workers. A worker's stay is
// assumed to be as short as a claim, which is rare, so the share is an upper bound. Errors: those of the images.
// Threads: one.
#pragma once

#include "../harness.hpp"

#include "../../examples/shapes.hpp"

#include <millrace/millrace.hpp>

#include <memory>

namespace bench {

struct statistics_cost {
  double claim_ns = 0, stay_ns = 0, phases_ns = 0, read_ns = 0, batch_ns = 0, measured_ns = 0;   // of one
  double claims = 0, reads = 0, batches = 0, samples = 0, cpu_ns = 0;                            // of the run

  double share() const {
    return (claims * (claim_ns + stay_ns + phases_ns / 8) + reads * read_ns + batches * batch_ns) / cpu_ns;
  }
  double query_share() const { return batches / 20 * measured_ns / cpu_ns; }
  std::string text() const {
    char line[400];
    std::snprintf(line, sizeof line,
                  "  a claim %.0f ns, a stay %.0f, parts of a claim (one in 8) %.0f, a read %.0f, a batch %.0f, "
                  "statistics() %.0f\n"
                  "  %.0f samples in %.0f claims, %.0f reads, %.0f batches; %.1f us of processor time "
                  "a sample\n",
                  claim_ns, stay_ns, phases_ns, read_ns, batch_ns, measured_ns, samples, claims, reads, batches,
                  1e-3 * cpu_ns / samples);
    return line;
  }
};

/// Returns the CPU time of one of many calls, in ns.
template <class Body>
double cost_of(std::uint64_t count, const Body& body) {
  const double before = now().cpu_s;
  for (std::uint64_t n = 0; n < count; ++n) body(n);
  return 1e9 * (now().cpu_s - before) / static_cast<double>(count);
}

inline statistics_cost measure_statistics_cost(double seconds) {
  namespace mr = millrace;
  struct file {
    std::shared_ptr<const std::vector<std::byte>> jpeg;
  };
  struct example {
    mr::picture pixels;
  };
  statistics_cost c;
  constexpr std::uint64_t many = 200'000;
  mr::detail::worker_times worker(mr::detail::steady_now_ns());
  c.stay_ns = cost_of(many, [&](std::uint64_t) {
    worker.begin(mr::detail::steady_now_ns());
    worker.leave(mr::detail::steady_now_ns(), mr::detail::worker_times::waits_for::input);
  });
  worker.begin(mr::detail::steady_now_ns());
  c.claim_ns = cost_of(many, [&](std::uint64_t n) {
    worker.at(n);
    worker.worked(mr::detail::steady_now_ns(), 4, n);
  });
  mr::detail::phase_times phases;
  c.phases_ns = cost_of(many, [&](std::uint64_t) {
    const std::uint64_t start = mr::detail::steady_now_ns(), mapped = mr::detail::steady_now_ns();
    phases.add(mapped - start, mr::detail::steady_now_ns() - mapped, 4);
  });
  mr::detail::read_meter meter;
  c.read_ns = cost_of(many, [&](std::uint64_t) { mr::detail::read_meter::running one(meter); });
  mr::detail::trainer_times trainer;
  trainer.start(mr::detail::steady_now_ns());
  c.batch_ns = cost_of(many, [&](std::uint64_t) {
    trainer.call(mr::detail::steady_now_ns());
    trainer.record_return(mr::detail::steady_now_ns(), mr::detail::trainer_times::kind::batch, {});
  });

  std::vector<file> files;
  for (std::size_t i = 0; i < 512; ++i)
    files.push_back({std::make_shared<const std::vector<std::byte>>(make_shape({.seed = 1, .index = i}).jpeg)});
  const auto prepare = [](const file& f, mr::rng& random) {
    return example{mr::jpeg(mr::bytes::borrowed(*f.jpeg)).random_resized_crop(224, random).random_flip(random)};
  };
  mr::session run{mr::from(files) | mr::map(prepare) | mr::batch<&example::pixels>({.size = 64}),
                  {.epochs = mr::endless, .notice = mr::quiet}};
  clocks before;
  mr::flow_statistics then;
  for (auto& b : run) {
    if (b.step() == 8) {
      before = now();
      then = run.statistics();
    }
    if (b.step() > 16 && (now() - before).wall_s > seconds) break;
  }
  c.cpu_ns = 1e9 * (now() - before).cpu_s;
  const mr::flow_statistics f = run.statistics() - then;
  c.measured_ns = cost_of(200, [&](std::uint64_t) { static_cast<void>(run.statistics()); });
  c.samples = static_cast<double>(f.samples);
  const double rendered = static_cast<double>(f.find(mr::stage_kind::work)->items);
  c.claims = rendered / static_cast<double>(mr::picture::together);
  c.reads = static_cast<double>(f.find(mr::stage_kind::read)->service_ns.count());
  c.batches = static_cast<double>(f.batches);
  return c;
}

}   // namespace bench
