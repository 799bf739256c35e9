// ---- order/batch_numbers.hpp
void show() {
EXAMPLE
}

// ---- order/exact_order.hpp
#include <millrace/order/lane_cursor.hpp>

void show(const std::vector<std::uint64_t>& counts, const mr::world& r) {
EXAMPLE
}

// ---- order/lane_cursor.hpp
void read(std::uint64_t shard, std::uint64_t index);

void show(const mr::detail::exact_order& order, std::uint64_t resumed_at) {
EXAMPLE
}

// ---- order/mix_plan.hpp
void show(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
EXAMPLE 1
}

// ---- order/mix_schedule.hpp
#include <millrace/order/mix_schedule.hpp>

void show(const mr::detail::mix_rule& rule, const std::vector<std::uint64_t>& samples) {
EXAMPLE
}

// ---- order/shard_order.hpp
void show(std::uint64_t epoch, std::size_t k) {
EXAMPLE
}

// ---- order/shuffle_quality.hpp
void show(const mr::detail::exact_order& order, const mr::world& mine,
          const mr::detail::ordered_sample& planned) {
EXAMPLE
}

// ---- order/sliding_jitter.hpp
void show(std::uint64_t length, std::uint64_t (*key_of)(std::uint64_t)) {
EXAMPLE
}

// ---- sources/files.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void show() {
EXAMPLE
}

// ---- sources/from.hpp
#include <vector>
struct clip { std::vector<float> samples; };
std::optional<clip> next_clip();
struct my_source {
  using item = clip;
  struct reader { std::optional<clip> next(); };
  explicit my_source(std::string folder);
  std::size_t shards() const;
  reader open(std::size_t shard, std::uint64_t epoch) const;
};
void flows(const std::vector<clip>& clips) {
EXAMPLE
}

// ---- sources/keys_from.hpp
#include <millrace/shards.hpp>
void example() {
EXAMPLE
}

// ---- sources/lines.hpp
#include <millrace/stages/map.hpp>
void use(std::string_view text, std::uint64_t number);
void flows(mr::block_pool& pool) {
EXAMPLE
}

// ---- sources/listed_key.hpp
void leave_out(const std::string& key, const std::string& shard);
void example(std::string_view text) {
EXAMPLE
}

// ---- sources/path_glob.hpp
void example(const mr::detail::listed_folder_rule& o) {
EXAMPLE
}

// ---- sources/sidecar_counts.hpp
void plan_with(std::uint64_t samples);
void plan(const std::vector<std::string>& shards, std::size_t k) {
EXAMPLE
}

// ---- sources/missing_headers.hpp
// block 1 is a call that does not compile

// ---- sources/join.hpp
#include <millrace/millrace.hpp>
struct example { std::int32_t label; };
example prepare(const mr::record& r);
void flows() {
EXAMPLE
}

// ---- sources/mix.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r, mr::rng& rng);
void flows() {
EXAMPLE
}

// ---- sources/mixed_shards.hpp
#include <millrace/mix.hpp>
void example(std::uint64_t seed) {
  const mr::weighted photos{mr::shards("a"), 0.7};
  const mr::weighted drawings{mr::mix({.on_exhausted = mr::exhausted::repeat}, mr::weighted{mr::shards("b")}), 0.3};
  EXAMPLE
}

// ---- sources/entry_points.hpp
#include <cstdio>
namespace example {
std::vector<std::byte> entries_of(std::span<const std::byte> payload);
}
void example_of() {
EXAMPLE
}

// ---- sources/write_set_index.hpp
#include <millrace/sources/shards.hpp>
#include <cstdio>
// In place of adapt/remote.hpp, whose libraries are not everywhere.
namespace mr {
using namespace millrace;
millrace::storage remote();
}
void example() {
EXAMPLE
}

// ---- sources/token_data.hpp
void use(const mr::packed&);
void example(const mr::detail::file_list& files, const mr::detail::token_data_options& options,
             const std::vector<mr::detail::ordered_sample>& samples) {
EXAMPLE
}

// ---- sources/token_files.hpp
#include <millrace/stages/batch.hpp>
#include <millrace/stages/pack.hpp>
#include <millrace/stages/shuffle.hpp>
void flows() {
EXAMPLE 1
EXAMPLE 2
}

// ---- sources/token_layout.hpp
void example(const std::string& name, std::span<const std::byte> front, std::uint64_t size,
             const mr::detail::token_layout_options& options) {
EXAMPLE
}

// ---- sources/token_windows.hpp
void example(const mr::detail::token_layout& layout, std::span<const std::byte> bytes, const std::string& name) {
EXAMPLE
}

// ---- stages/batch.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&, mr::rng&);

void show() {
EXAMPLE
}

// ---- stages/bucket.hpp
#include <millrace/text.hpp>

struct example {
  mr::ragged<std::uint32_t> words;
  std::int32_t label, kind;
};
example prepare(const mr::record&);

void show() {
EXAMPLE 1
  auto kinds =
EXAMPLE 2
      ;
}

// ---- stages/expand.hpp
#include <millrace/text.hpp>

struct clip {
  std::vector<float> frames;
  int label;
};
struct window {
  std::span<const float> frames;
  int label;
};
struct windows_of {
  using output = window;
  std::size_t frames;
  std::size_t max_outputs(const clip& c) const { return c.frames.size() / frames; }
  void push(const clip& c, auto& emit) const { emit(window{c.frames, c.label}); }
};
struct sentences_of {
  using output = std::string;
  void push(const mr::line& l, auto& emit) const { emit(std::string(l.text())); }
};

void show(const std::vector<clip>& clips) {
EXAMPLE
}

// ---- stages/map.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&, mr::rng&);
example ask_a_server(example);

void show() {
EXAMPLE
}

// ---- stages/mix_rows.hpp
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels, class Lambda>
void train_step(const Pixels&, const Labels&, const Labels&, const Lambda&);

void show() {
EXAMPLE
}

// ---- stages/pack.hpp
#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(const mr::record&);

void show() {
EXAMPLE
}

// ---- stages/shuffle.hpp
#include <millrace/shards.hpp>

void show() {
EXAMPLE
}

// ---- stages/take.hpp
#include <millrace/text.hpp>

bool is_long(const mr::line&);

void show() {
EXAMPLE
}

// ---- stages/to_device.hpp
#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(std::string_view);

void show(mr::device gpu, mr::stream_view my_stream) {
  auto batches = mr::lines("books.txt") | mr::map(tokenize) | mr::pack({}) | mr::batch<&mr::packed::ids>({.size = 32});
EXAMPLE
}
