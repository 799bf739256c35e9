// ---- base/address_sanitizer.hpp
void example(void* slot, std::size_t bytes) {
EXAMPLE
}

// ---- base/crc32c.hpp
void example(std::span<const std::byte> data, std::span<const std::byte> first_half,
             std::span<const std::byte> second_half) {
EXAMPLE 1
{
EXAMPLE 2
}
}

// ---- base/digest.hpp
void example(std::uint64_t position, std::span<const std::byte> row) {
EXAMPLE
}

// ---- base/error.hpp
#include <iostream>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
row prepare(const mr::record& r);
void step(const auto& batch);
void quarantine(const std::string& shard, const std::string& key);
void example() {
  auto run = mr::session{mr::shards("train.tar") | mr::map(prepare) | mr::batch<&row::label>({.size = 256})};
EXAMPLE
}

// ---- base/file_kind.hpp
#include <span>
#include <string>
void fail(const std::string& message);
void show(std::span<const std::byte> first_bytes, std::uint64_t size) {
EXAMPLE
}

// ---- base/half.hpp
void example(double loss, float logit, int nonfinite, int nans) {
EXAMPLE
}

// ---- base/json_objects.hpp
#include <map>
#include <string_view>
void example(std::string_view text, std::map<std::string, std::uint64_t>& counts) {
EXAMPLE
}

// ---- base/json_writer.hpp
void example(std::string_view name, double value) {
EXAMPLE
}

// ---- base/limits.hpp
#include <millrace/millrace.hpp>
void example(const std::vector<std::string>& names, const mr::record& r) {
EXAMPLE
}

// ---- base/machine.hpp
#include <cstdio>
void use(const char* line);
void example(int gpus, char (&line)[80]) {
EXAMPLE
}

// ---- base/notice.hpp
#include <millrace/millrace.hpp>
#include <ostream>
struct example { std::int32_t number; };
example prepare(const int& n);
void alarm(const std::string& shard, const std::string& text);
void show(const std::vector<int>& numbers, std::ostream& log) {
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
  auto more = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
EXAMPLE
}

// ---- base/random.hpp
#include <millrace/item/record.hpp>
struct example {};
example varied(const mr::record& r, bool mirrored, std::int64_t angle, double gain);
EXAMPLE 1
// block 2 is a table

// ---- base/text.hpp
#include <millrace/base/crc32c.hpp>
void example(std::string& text, std::uint64_t digest) {
EXAMPLE
}

// ---- base/version.hpp
#include <millrace/base/error.hpp>
EXAMPLE

// ---- flow/diagnose.hpp
// block 1 is a message of a compiler

// ---- flow/flow.hpp
#include <millrace/millrace.hpp>

struct clip {};
struct window {
  mr::image pixels;
  std::int32_t id;
};
window prepare(const clip&);

void show(const std::vector<clip>& clips) {
EXAMPLE
}

// ---- flow/refusals.hpp
#include <millrace/flow/flow.hpp>

EXAMPLE
flow<int> without_stages;

// ---- flow/source_weight.hpp
#include <millrace/mix.hpp>

#include <cmath>

void weighted_web() {
  auto web = mr::shards("web.tar");
EXAMPLE
}

// ---- flow/stage.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
};
void show() {
EXAMPLE 1
}
struct window {};
using clip = std::vector<mr::image>;
std::vector<window> cut(const clip& frames, std::size_t count);
EXAMPLE 2
EXAMPLE 3
void show(const std::vector<clip>& clips) {
  static_cast<void>(mr::from(clips) | mr::expand(windows_of{.frames = 8}));
  static_cast<void>(mr::from(numbers{}));
}

// ---- flow/stage_list.hpp
#include <millrace/millrace.hpp>
#include <millrace/flow/stage_list.hpp>
template <class First, class Second>
void show(First first_stage, Second second_stage) {
EXAMPLE
}
void use() { show(mr::shuffle({.window = 9}), mr::take(9)); }

// ---- measure/copy_times.hpp
void wait_for_space();
void example(mr::detail::copy_times& times, std::uint64_t queued_ns, std::uint64_t batch, std::size_t bytes) {
EXAMPLE
}

// ---- measure/phase_times.hpp
void example(mr::detail::phase_times& times, mr::stage_statistics& stage, std::uint64_t maps_ns,
             std::uint64_t rendering_ns, std::size_t samples) {
EXAMPLE
}

// ---- measure/read_meter.hpp
#include <millrace/io/file/byte_source.hpp>
void example(mr::file_source& file, std::span<std::byte> buffer) {
EXAMPLE
}

// ---- measure/run_statistics.hpp
mr::flow_statistics current_statistics();
void example(mr::flow_statistics statistics, const mr::detail::process_statistics& at_start,
             mr::detail::warm_up_statistics& warm_ups, std::uint64_t batches, const mr::detail::read_meter& meter) {
EXAMPLE
}

// ---- measure/run_stats.hpp
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

// ---- measure/span_ring.hpp
void draw(const mr::detail::span_ring::span& s);
void example(mr::detail::span_ring& ring, std::uint64_t t0, std::uint64_t t1, std::uint64_t batch) {
EXAMPLE
}

// ---- measure/trace_range.hpp
void example(std::uint64_t batch, const std::string& name) {
EXAMPLE
}

// ---- measure/trainer_times.hpp
void example(mr::detail::trainer_times& times, mr::flow_statistics& statistics, std::uint64_t started_ns,
             std::uint64_t called_ns, std::uint64_t arrived_ns, std::uint64_t returned_ns, std::uint64_t now_ns) {
EXAMPLE
}

// ---- measure/worker_times.hpp
void example(mr::detail::worker_times& times, mr::stage_statistics& stage, std::uint64_t now,
             std::uint64_t batch) {
EXAMPLE
}

// ---- measure/distribution.hpp
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
void train_one_epoch(mr::session<&row::label>& run);
void example(mr::session<&row::label>& run, const mr::distribution& other) {
EXAMPLE
}

// ---- measure/event_counts.hpp
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

// ---- measure/event_names.hpp
#include <millrace/item/scratch.hpp>
void example(mr::scratch& s, const mr::event_count& c) {
EXAMPLE
}

// ---- measure/flow_statistics.hpp
#include <millrace/report/verdict/verdict.hpp>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
void train_one_epoch(mr::session<&row::label>& run);
void example(mr::session<&row::label>& run) {
EXAMPLE
}

// ---- measure/histogram.hpp
void example(std::uint64_t spent_ns) {
EXAMPLE
}

// ---- measure/process_statistics.hpp
void run_epoch();
void example() {
EXAMPLE
}

// ---- measure/read_levels.hpp
void example(mr::read_levels& levels, std::uint64_t spent_ns, std::uint64_t read_ns, std::uint64_t size) {
EXAMPLE
}

// ---- measure/timeline.hpp
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
void example(const mr::session<&row::label>& run, std::vector<std::uint64_t>& waits_ns) {
EXAMPLE
}

// ---- simd/byte_marks.hpp
void example(const std::uint8_t* from) {
EXAMPLE
}

// ---- simd/byte_tables.hpp
#if defined __x86_64__ || defined __aarch64__
void example(const std::uint8_t* entries, std::uint8_t* bytes) {
  using namespace mr::detail::word_layer;
EXAMPLE
}
#endif

// ---- simd/crc_lanes.hpp
#include <millrace/simd/cpu_features.hpp>
#if defined __x86_64__ || defined __aarch64__
void example(std::span<const std::byte> data, std::uint32_t state) {
EXAMPLE
}
#endif

// ---- simd/points.hpp
#ifdef __aarch64__
void example() {
EXAMPLE
}
#endif

// ---- simd/stream_copy.hpp
#include <vector>
void example(std::byte* slot, std::size_t offset, const std::vector<std::byte>& row) {
EXAMPLE
}

// ---- simd/words.hpp
// block 1 is the list of includes of a kernel

// ---- sync/batch_ring.hpp
// block 1 is a diagram of a slot's states
void example(std::vector<std::byte*> pieces, std::uint64_t batch) {
EXAMPLE 2
}

// ---- sync/doorbell.hpp
void example(mr::detail::doorbell& bell, std::atomic<int>& work_to_do) {
EXAMPLE
}

// ---- sync/queues.hpp
#include <millrace/item/sample.hpp>
#include <string>
void read(const std::string& shard);
void example() {
EXAMPLE 1
}
void example(std::uint64_t ticket, mr::detail::sample<mr::record> s) {
EXAMPLE 2
}

// ---- sync/notice_outlet.hpp
struct session_options { std::function<void(const mr::notice&)> notice; };
void example(const session_options& options) {
EXAMPLE
}

// ---- sync/slow_step.hpp
struct place { int find(const std::string& name) const; };
void example(const std::vector<std::string>& names, const place* at, std::vector<int>& stamps, std::size_t i) {
EXAMPLE
}

// ---- sync/start_thread.hpp
void read_all();
void work(std::size_t index);
void example(std::vector<std::thread>& all) {
EXAMPLE
reader.join();
}
