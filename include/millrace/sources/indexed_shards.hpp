// indexed_shards: plain tar shards in an exact order, for ranks and resume. Opt-in: not in the umbrella.
//
//   #include <millrace/shards.hpp>
//   auto flow = mr::indexed_shards("train-{000..146}.tar", {.seed = 7}) | mr::shuffle({.window = 8192})
//             | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
//   mr::session run{std::move(flow), {.epochs = 90, .ranks = mr::world_from_launcher(), .resume = text}};
//   for (auto& b : run) { step(b);  if (save_now) write(mr::to_text(b.position())); }
//
// Each shard has an index, made from its headers at the first start and kept in a file (io/index/index_file.hpp).
// Samples come in the order of a exact_order: the same for every number of workers and of ranks that divides lanes and
// global batch, and resumed behind any batch. Every sample has to be one row: no expand, filter or later shuffle.
// Errors: those of shards(); a damaged or compressed shard is an error at the start, a payload that is not what it was
// at its batch. Threads: as shards().
#pragma once

#include <millrace/flow/flow.hpp>
#include <millrace/io/index/shard_data.hpp>
#include <millrace/read/indexed_run.hpp>
#include <millrace/sources/shard_list.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace millrace { inline namespace MILLRACE_ABI {

struct indexed_shards_options {
  std::uint64_t seed = 0;                                    ///< of shuffle and of every draw in the flow
  std::vector<std::string> fields{};                         ///< wanted, "jpg;png" for alternatives; empty: all
  std::uint64_t max_member_bytes = std::uint64_t{1} << 30;   ///< a larger member is an error before it is read
  std::string index_folder{};                                ///< where indexes are kept; empty: each beside its shard
  bool show_progress = true;   ///< on stderr, of making indexes, where that takes longer than a second, and a line
                               ///< where they cannot be kept
  bool strict = false;   ///< a shard that ends on a member's border without an end marker is an error, not told once
};

class indexed_shards_source {
 public:
  using item = record;
  using planned = indexed_run<shard_data>;

  indexed_shards_source(std::vector<std::string> names, const indexed_shards_options& o)
      : data_(std::make_shared<shard_data>(
            std::move(names),
            shard_data_options{.reader = {.fields = o.fields, .max_member_bytes = o.max_member_bytes},
                               .files = {.cache_folder = o.index_folder},
                               .progress_file = o.show_progress ? STDERR_FILENO : -1,
                               .strict = o.strict})) {}

  std::unique_ptr<planned> plan(const indexed_run_options& o) const { return std::make_unique<planned>(data_, o); }

  const std::shared_ptr<shard_data>& data() const noexcept { return data_; }
  /// What a session counts at its start.
  void report(event_counts& counts) const noexcept { data_->report(counts); }

  // What every source has. A session asks plan() instead, so open() is only declared.
  std::size_t shards() const noexcept { return data_->counts().size(); }
  typename planned::source_type::reader open(std::size_t shard, std::uint64_t epoch) const;

 private:
  std::shared_ptr<shard_data> data_;
};

/// `names` is whatever list_shards() takes: one pattern, or a list.
template <class Names>
auto indexed_shards(const Names& names, const indexed_shards_options& options = {}) {
  return flow<record, indexed_shards_source>{{}, indexed_shards_source(list_shards(names), options), options.seed};
}

}}  // namespace millrace
