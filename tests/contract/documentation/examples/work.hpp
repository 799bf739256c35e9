// ---- batch_rows.hpp
// block 1 is part of a class: work/batch/batch_segment.hpp

// ---- batch_segment.hpp
#include <millrace/pictures.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
std::vector<std::byte*> slots_of(std::size_t bytes);

void show(mr::detail::fused_maps<example> maps, mr::detail::worker_executor& pool, mr::detail::batch_ring& ring) {
EXAMPLE
}

// ---- damage_rule.hpp
bool damaged_row(const std::exception_ptr& error, const std::vector<std::uint8_t>& valid) {
EXAMPLE
  return from != 17;
}

// ---- no_row_mixer.hpp
#include <cstdio>
struct columns {};
void show() {
EXAMPLE
}

// ---- row_mixer.hpp
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

// ---- arena_executor.hpp
void show(std::shared_ptr<mr::detail::worker_task> task) {
EXAMPLE
}

// ---- dispatcher.hpp
void show(mr::detail::dispatcher_work& segment, mr::detail::worker_executor& executor,
          std::uint64_t n, std::uint64_t m) {
EXAMPLE
}

// ---- worker_executor.hpp
void show(std::shared_ptr<mr::detail::worker_task> task, std::size_t worker) {
EXAMPLE
}

// ---- segment.hpp
// block 1 is a diagram of the connections

// ---- worker_segment.hpp
#include <millrace/work/schedule/worker_executor.hpp>

mr::detail::thread_executor pool(1);

EXAMPLE

// ---- final_segment.hpp
#include <cstdio>
void show(mr::detail::final_segment& last) {
EXAMPLE
}

// ---- fused_maps.hpp
#include <millrace/pictures.hpp>

struct example {
  mr::picture pixels;
};
example decode(const mr::record&);
example crop(example, mr::rng&);

void show(mr::record r, std::uint64_t id, mr::scratch& memory, std::size_t& map_at_work) {
EXAMPLE
}

// ---- parallel_segment.hpp
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

// ---- replay_log.hpp
void show(const mr::detail::shard_order& order) {
EXAMPLE
}

// ---- sample_names.hpp
// block 1 is a table of the names

// ---- serial_segment.hpp
#include <millrace/work/segment/serial_stages.hpp>

struct clip {};
using next_segment = mr::detail::parallel_segment<mr::detail::fused_maps<clip>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shard_order& order, std::size_t max_bytes, next_segment& next) {
EXAMPLE
}

// ---- serial_stages.hpp
// block 1 is a table of the stages

// ---- stage_passages.hpp
void example() {
EXAMPLE
}

// ---- ticket_input.hpp
#include <millrace/work/schedule/dispatcher.hpp>

void show(mr::detail::batch_ring& ring, std::shared_ptr<mr::detail::dispatcher> dispatcher,
          mr::detail::sample<mr::record> s, std::uint64_t ticket, std::size_t bytes) {
EXAMPLE
}
