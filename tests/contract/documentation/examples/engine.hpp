// ---- deliver/batch.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels>
void train_step(const Pixels&, const Labels&, mr::stream_view = {});

void show() {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})};
EXAMPLE
}

// ---- deliver/batch_lease.hpp
struct some_session {
  mr::batch_lease next();
};
void log(std::size_t rows, std::uint64_t epoch, std::uint64_t step);

void show(some_session& run) {
EXAMPLE 1
}
// block 2 is a table of the leases

// ---- deliver/device_batch_output.hpp
// block 1 is a table of the states of slots

// ---- deliver/mixed_batch.hpp
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels, class Lambda>
void train_step(const Pixels&, const Labels&, const Labels&, const Lambda&, mr::stream_view);

void show() {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})
                  | mr::mixup<&example::pixels, &example::label>()};
EXAMPLE
}

// ---- read/mix_stream.hpp
#include <millrace/sources/shards.hpp>

void use(mr::detail::sample<mr::record>);

void show(const mr::detail::shards_source& source, mr::event_counts& counts) {
EXAMPLE
}

// ---- read/mix_streams.hpp
#include <millrace/sources/lines.hpp>
#include <millrace/sources/shards.hpp>

void use(std::size_t source, const std::variant<mr::record, mr::line>& item);

void show(const mr::detail::mix_rule& rule, const mr::detail::shards_source& shards,
          const mr::detail::lines_source& lines, std::uint64_t epoch) {
EXAMPLE
}

// ---- read/mixed_item.hpp
void use(mr::detail::mixed_item<mr::record, int> item) {
EXAMPLE
}

// ---- read/mixed_data.hpp
#include <millrace/mix.hpp>

void show(std::shared_ptr<mr::detail::shard_data> a, std::shared_ptr<mr::detail::shard_data> b,
          std::span<const mr::detail::located_sample> samples, std::span<mr::detail::mixed_record> records,
          std::exception_ptr failure) {
EXAMPLE
}

// ---- read/block_reader.hpp
#include <millrace/io/index/set/shard_data.hpp>
void use(const mr::record&);
void example(std::shared_ptr<mr::detail::shard_data> data, const mr::detail::exact_order& plan,
             const std::vector<mr::detail::ordered_sample>& samples) {
EXAMPLE
}

// ---- read/data_identity.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source) {
EXAMPLE
}

// ---- read/indexed_run.hpp
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/sources/shards.hpp>

void show(std::shared_ptr<mr::detail::shard_data> data, mr::world mine, std::string text,
          const mr::detail::shards_source& source, mr::detail::shard_read_stage_options options,
          mr::detail::sample_sink<mr::record>& sink, mr::detail::ready_batch& batch, std::uint64_t epoch,
          std::uint64_t position) {
EXAMPLE
}

// ---- read/indexed_run_options.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, mr::world mine, std::string text) {
EXAMPLE
}

// ---- read/indexed_source.hpp
#include <millrace/io/index/set/shard_data.hpp>

void use(mr::detail::sample<mr::record>);

void show(std::shared_ptr<mr::detail::shard_data> data, const mr::detail::exact_order& plan, mr::world mine,
          std::size_t shard, std::uint64_t epoch) {
EXAMPLE
}

// ---- read/planned_run.hpp
#include <millrace/item/owner.hpp>

mr::detail::owner<mr::detail::planned_run> plan();

void show(mr::detail::ready_batch& batch) {
EXAMPLE
}

// ---- read/replayed_run.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, std::string text, mr::detail::shard_read_stage_options options,
          mr::detail::sample_sink<mr::record>& sink, mr::detail::ready_batch& batch) {
EXAMPLE
}

// ---- read/interleaved_read_stage.hpp
#include <millrace/read/stage/lane_starts.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

using first_segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shards_source& source, const mr::detail::lane_starts& at, first_segment& segment,
          mr::detail::sample_sink<mr::record>& next) {
EXAMPLE
}

// ---- read/lane_starts.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, const mr::detail::shard_order& order, mr::world mine) {
EXAMPLE
}

// ---- read/lost_shards.hpp
void record(const std::exception_ptr& why);
void lose(const std::exception_ptr& error) {
EXAMPLE
}

// ---- read/read_stage_base.hpp
#include <millrace/sources/shards.hpp>

extern mr::detail::reorder_buffer<mr::detail::shards_source> buffer;

EXAMPLE

// ---- read/reorder_buffer.hpp
#include <millrace/sources/shards.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

void wake_readers();
using segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shard_order& order, segment& first_segment,
          std::vector<mr::detail::sample<mr::record>> samples) {
EXAMPLE
}

// ---- read/shard_read_stage.hpp
#include <millrace/sources/shards.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

using segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shards_source& source, const mr::detail::shard_order& order,
          mr::detail::shard_read_stage_options options, segment& first_segment) {
EXAMPLE
}

// ---- tune/autotuner.hpp
#include <millrace/millrace.hpp>
#include <millrace/tuning.hpp>
struct example { float number; };
void training(std::vector<example> examples) {
  auto flow = mr::from(std::move(examples)) | mr::batch<&example::number>({.size = 32});
EXAMPLE
}

// ---- tune/tuning.hpp
#include <millrace/millrace.hpp>
#include <millrace/tuning.hpp>
struct example { float number; };
void training(std::vector<example> examples, const mr::flow_statistics& now, const mr::flow_statistics& before) {
  auto flow = mr::from(std::move(examples)) | mr::batch<&example::number>({.size = 32});
EXAMPLE
}

// ---- work/batch_rows.hpp
// block 1 is part of a class: work/batch/batch_segment.hpp

// ---- work/batch_segment.hpp
#include <millrace/pictures.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
std::vector<std::byte*> slots_of(std::size_t bytes);

void show(mr::detail::fused_maps<example> maps, mr::detail::worker_executor& pool, mr::detail::batch_ring& ring) {
EXAMPLE
}

// ---- work/damage_rule.hpp
bool damaged_row(const std::exception_ptr& error, const std::vector<std::uint8_t>& valid) {
EXAMPLE
  return from != 17;
}

// ---- work/no_row_mixer.hpp
#include <cstdio>
struct columns {};
void show() {
EXAMPLE
}

// ---- work/row_mixer.hpp
#include <millrace/item/sample.hpp>

struct example {
  mr::tensor<std::uint8_t, 3> pixels;
  std::int32_t label;
};
using columns = mr::detail::mixed_columns<&example::pixels, &example::label, &example::pixels, &example::label>;

void show(const mr::detail::pair_rule& rule, const mr::detail::batch_numbers& numbers, const columns& layout,
          mr::detail::batch_ring& ring, std::uint64_t batch, std::byte* base, mr::detail::sample<int> sample) {
EXAMPLE
}

// ---- work/arena_executor.hpp
void show(std::shared_ptr<mr::detail::worker_task> task) {
EXAMPLE
}

// ---- work/dispatcher.hpp
void show(mr::detail::dispatcher_work& segment, mr::detail::worker_executor& executor,
          std::uint64_t n, std::uint64_t m) {
EXAMPLE
}

// ---- work/worker_executor.hpp
void show(std::shared_ptr<mr::detail::worker_task> task, std::size_t worker) {
EXAMPLE
}

// ---- work/segment.hpp
// block 1 is a diagram of the connections

// ---- work/worker_segment.hpp
#include <millrace/work/schedule/worker_executor.hpp>

mr::detail::thread_executor pool(1);

EXAMPLE

// ---- work/final_segment.hpp
#include <cstdio>
void show(mr::detail::final_segment& last) {
EXAMPLE
}

// ---- work/fused_maps.hpp
#include <millrace/pictures.hpp>

struct example {
  mr::picture pixels;
};
example decode(const mr::record&);
example crop(example, mr::rng&);

void show(mr::record r, std::uint64_t id, mr::scratch& memory, std::size_t& map_at_work) {
EXAMPLE
}

// ---- work/parallel_segment.hpp
struct clip {
  std::size_t size;
};
struct window {};
struct windows_of {
  using output = window;
  std::size_t frames;
  std::size_t max_outputs(const clip& c) const { return c.size / frames; }
  void push(const clip&, auto& emit) const { emit(window{}); }
};
using next_segment = mr::detail::parallel_segment<mr::detail::fused_maps<window>, mr::detail::no_expanding_stage>;

void show(mr::detail::worker_executor& pool, next_segment& next) {
EXAMPLE
}

// ---- work/replay_log.hpp
void show(const mr::detail::shard_order& order) {
EXAMPLE
}

// ---- work/sample_names.hpp
// block 1 is a table of the names

// ---- work/serial_segment.hpp
#include <millrace/work/segment/serial_stages.hpp>

struct clip {};
using next_segment = mr::detail::parallel_segment<mr::detail::fused_maps<clip>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shard_order& order, std::size_t max_bytes, next_segment& next) {
EXAMPLE
}

// ---- work/serial_stages.hpp
// block 1 is a table of the stages

// ---- work/stage_passages.hpp
void example() {
EXAMPLE
}

// ---- work/ticket_input.hpp
#include <millrace/work/schedule/dispatcher.hpp>

void show(mr::detail::batch_ring& ring, std::shared_ptr<mr::detail::dispatcher> dispatcher,
          mr::detail::sample<mr::record> s, std::uint64_t ticket, std::size_t bytes) {
EXAMPLE
}
