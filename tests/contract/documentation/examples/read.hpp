// ---- mix_stream.hpp
#include <millrace/sources/shards.hpp>

void use(mr::detail::sample<mr::record>);

void show(const mr::detail::shards_source& source, mr::event_counts& counts) {
EXAMPLE
}

// ---- mix_streams.hpp
#include <millrace/sources/lines.hpp>
#include <millrace/sources/shards.hpp>

void use(std::size_t source, const std::variant<mr::record, mr::line>& item);

void show(const mr::detail::mix_rule& rule, const mr::detail::shards_source& shards,
          const mr::detail::lines_source& lines, std::uint64_t epoch) {
EXAMPLE
}

// ---- mixed_item.hpp
void use(mr::detail::mixed_item<mr::record, int> item) {
EXAMPLE
}

// ---- mixed_data.hpp
#include <millrace/mix.hpp>

void show(std::shared_ptr<mr::detail::shard_data> a, std::shared_ptr<mr::detail::shard_data> b,
          std::span<const mr::detail::located_sample> samples, std::span<mr::detail::mixed_record> records,
          std::exception_ptr failure) {
EXAMPLE
}

// ---- block_reader.hpp
#include <millrace/io/index/set/shard_data.hpp>
void use(const mr::record&);
void example(std::shared_ptr<mr::detail::shard_data> data, const mr::detail::exact_order& plan,
             const std::vector<mr::detail::ordered_sample>& samples) {
EXAMPLE
}

// ---- data_identity.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source) {
EXAMPLE
}

// ---- indexed_run.hpp
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/sources/shards.hpp>

void show(std::shared_ptr<mr::detail::shard_data> data, mr::world mine, std::string text,
          const mr::detail::shards_source& source, mr::detail::shard_read_stage_options options,
          mr::detail::sample_sink<mr::record>& sink, mr::detail::ready_batch& batch, std::uint64_t epoch,
          std::uint64_t position) {
EXAMPLE
}

// ---- indexed_run_options.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, mr::world mine, std::string text) {
EXAMPLE
}

// ---- indexed_source.hpp
#include <millrace/io/index/set/shard_data.hpp>

void use(mr::detail::sample<mr::record>);

void show(std::shared_ptr<mr::detail::shard_data> data, const mr::detail::exact_order& plan, mr::world mine,
          std::size_t shard, std::uint64_t epoch) {
EXAMPLE
}

// ---- planned_run.hpp
mr::detail::owner<mr::detail::planned_run> plan();

void show(mr::detail::ready_batch& batch) {
EXAMPLE
}

// ---- replayed_run.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, std::string text, mr::detail::shard_read_stage_options options,
          mr::detail::sample_sink<mr::record>& sink, mr::detail::ready_batch& batch) {
EXAMPLE
}

// ---- interleaved_read_stage.hpp
#include <millrace/read/stage/lane_starts.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

using first_segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shards_source& source, const mr::detail::lane_starts& at, first_segment& segment) {
EXAMPLE
}

// ---- lane_starts.hpp
#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, const mr::detail::shard_order& order, mr::world mine) {
EXAMPLE
}

// ---- lost_shards.hpp
void record(const std::exception_ptr& why);
void lose(const std::exception_ptr& error) {
EXAMPLE
}

// ---- read_stage_base.hpp
#include <millrace/sources/shards.hpp>

extern mr::detail::reorder_buffer<mr::detail::shards_source> buffer;

EXAMPLE

// ---- reorder_buffer.hpp
#include <millrace/sources/shards.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

void wake_readers();
using segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shard_order& order, segment& first_segment,
          std::vector<mr::detail::sample<mr::record>> samples) {
EXAMPLE
}

// ---- shard_read_stage.hpp
#include <millrace/sources/shards.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

using segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shards_source& source, const mr::detail::shard_order& order,
          mr::detail::shard_read_stage_options options, segment& first_segment) {
EXAMPLE
}
