// ---- files.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void show() {
EXAMPLE
}

// ---- from.hpp
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

// ---- keys_from.hpp
#include <millrace/shards.hpp>
void example() {
EXAMPLE
}

// ---- lines.hpp
#include <millrace/stages/map.hpp>
void flows() {
EXAMPLE
}

// ---- listed_key.hpp
void leave_out(const std::string& key, const std::string& shard);
void example(std::string_view text) {
EXAMPLE
}

// ---- path_glob.hpp
void example(const mr::detail::folder_rule& o) {
EXAMPLE
}

// ---- sidecar_counts.hpp
void plan_with(std::uint64_t samples);
void plan(const std::vector<std::string>& shards, std::size_t k) {
EXAMPLE
}

// ---- missing_headers.hpp
// block 1 is a call that does not compile

// ---- join.hpp
#include <millrace/millrace.hpp>
struct example { std::int32_t label; };
example prepare(const mr::record& r);
void flows() {
EXAMPLE
}

// ---- mix.hpp
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r, mr::rng& rng);
void flows() {
EXAMPLE
}

// ---- mixed_shards.hpp
#include <millrace/mix.hpp>
void example(std::uint64_t seed) {
  const mr::weighted photos{mr::shards("a"), 0.7};
  const mr::weighted drawings{mr::mix({.on_exhausted = mr::exhausted::repeat}, mr::weighted{mr::shards("b")}), 0.3};
  EXAMPLE
}

// ---- entry_points.hpp
#include <cstdio>
namespace example {
std::vector<std::byte> entries_of(std::span<const std::byte> payload);
}
void example_of() {
EXAMPLE
}

// ---- write_set_index.hpp
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

// ---- token_data.hpp
void use(const mr::packed&);
void example(const mr::detail::file_list& files, const mr::detail::token_data_options& options,
             const std::vector<mr::detail::ordered_sample>& samples) {
EXAMPLE
}

// ---- token_files.hpp
#include <millrace/stages/batch.hpp>
#include <millrace/stages/pack.hpp>
#include <millrace/stages/shuffle.hpp>
void flows() {
EXAMPLE 1
EXAMPLE 2
}

// ---- token_layout.hpp
void example(const std::string& name, std::span<const std::byte> front, std::uint64_t size,
             const mr::detail::token_layout_options& options) {
EXAMPLE
}

// ---- token_windows.hpp
void example(const mr::detail::token_layout& layout, std::span<const std::byte> bytes, const std::string& name) {
EXAMPLE
}
