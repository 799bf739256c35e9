// ---- copy_times.hpp
void wait_for_space();
void example(mr::detail::copy_times& times, std::uint64_t queued_ns, std::uint64_t batch, std::size_t bytes) {
EXAMPLE
}

// ---- phase_times.hpp
void example(mr::detail::phase_times& times, mr::stage_statistics& stage, std::uint64_t maps_ns,
             std::uint64_t rendering_ns, std::size_t samples) {
EXAMPLE
}

// ---- read_meter.hpp
#include <millrace/io/file/byte_source.hpp>
void example(mr::file_source& file, std::span<std::byte> buffer) {
EXAMPLE
}

// ---- run_statistics.hpp
mr::flow_statistics current_statistics();
void example(mr::flow_statistics statistics, const mr::detail::process_statistics& at_start,
             mr::detail::warm_up_statistics& warm_ups, std::uint64_t batches) {
EXAMPLE
}

// ---- run_stats.hpp
#include <cstdio>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
row prepare(const mr::record& r);
void example() {
  auto run = mr::session{mr::shards("train.tar") | mr::map(prepare) | mr::batch<&row::label>({.size = 256})};
EXAMPLE
}

// ---- span_ring.hpp
void draw(const mr::detail::span_ring::span& s);
void example(mr::detail::span_ring& ring, std::uint64_t t0, std::uint64_t t1, std::uint64_t batch) {
EXAMPLE
}

// ---- trace_range.hpp
void example(std::uint64_t batch, const std::string& name) {
EXAMPLE
}

// ---- trainer_times.hpp
void example(mr::detail::trainer_times& times, mr::flow_statistics& statistics, std::uint64_t started_ns,
             std::uint64_t called_ns, std::uint64_t arrived_ns, std::uint64_t returned_ns, std::uint64_t now_ns) {
EXAMPLE
}

// ---- worker_times.hpp
void example(mr::detail::worker_times& times, mr::stage_statistics& stage, std::uint64_t now,
             std::uint64_t batch) {
EXAMPLE
}

// ---- distribution.hpp
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
void train_one_epoch(mr::session<&row::label>& run);
void example(mr::session<&row::label>& run, const mr::distribution& other) {
EXAMPLE
}

// ---- event_counts.hpp
#include <iostream>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
row prepare(const mr::record& r);
void example(mr::scratch& s) {
  auto run = mr::session{mr::shards("train.tar") | mr::map(prepare) | mr::batch<&row::label>({.size = 256})};
EXAMPLE
}

// ---- event_names.hpp
#include <millrace/item/scratch.hpp>
void example(mr::scratch& s, const mr::event_count& c) {
EXAMPLE
}

// ---- flow_statistics.hpp
#include <millrace/report/verdict/verdict.hpp>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
void train_one_epoch(mr::session<&row::label>& run);
void example(mr::session<&row::label>& run) {
EXAMPLE
}

// ---- histogram.hpp
void example(std::uint64_t spent_ns) {
EXAMPLE
}

// ---- process_statistics.hpp
void run_epoch();
void example() {
EXAMPLE
}

// ---- read_levels.hpp
void example(mr::read_levels& levels, std::uint64_t spent_ns, std::uint64_t read_ns, std::uint64_t size) {
EXAMPLE
}

// ---- timeline.hpp
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
void example(const mr::session<&row::label>& run, std::vector<std::uint64_t>& waits_ns) {
EXAMPLE
}
