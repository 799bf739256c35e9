// indexed_shards: plain tar shards in an exact order, for ranks and resume. Opt-in: not in the umbrella.
//
//   #include <millrace/shards.hpp>
//   auto flow = mr::indexed_shards("train-{000..146}.tar", {.seed = 7}) | mr::shuffle({.window = 8192})
//             | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
//   mr::session run{std::move(flow), {.epochs = 90, .world = mr::world_from_launcher(), .resume = text}};
//   for (auto& b : run) { step(b);  if (save_now) write(b.resume_text()); }
//
// Each shard has an index. The first start builds it from the shard's headers and saves it in a file
// (io/index/format/index_file.hpp). Samples come in the order of an exact_order (order/exact_order.hpp). The order does
// not depend on the number of workers. It does not depend on the world size either, which has to divide the global
// batch. The options only, without, where and repeats choose samples by their keys, and having by their fields, before
// any is read. A run over a choice is
// as exact as one over all samples. A key that no shard has is told once, at the start.
// A run can resume after any batch. Every sample has to become exactly one row: no expand, filter or later shuffle.
// Errors: those of shards(). A damaged or compressed shard is an error at the start. A payload that has changed since
// it was indexed is an error at its batch. Threads: as shards().
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of indexed_shards().
struct indexed_shards_options {
  std::uint64_t seed = 0;                                    ///< seed of the shuffle and of all random numbers
  std::vector<std::string> fields{};                         ///< fields; "jpg;png": alternatives; empty: all fields
  shard_limits limits{};                                     ///< what a shard may contain
  std::string index_folder{};                                ///< folder of the index files; empty: beside each shard
  /// Where the shards are. Indexes beside them are read; others are made, and kept only with index_folder.
  millrace::storage storage{};
  /// A file where the shards are that tells of all of them (examples/inspect --set-index), so that they need not be
  /// asked for at the start; empty: set.millrace-index beside shards of a storage, if it is there.
  std::string set_index{};
  /// Receives progress if listing or indexing takes long, and a warning if indexes cannot be saved. Empty: stderr.
  notice_function notice{};
  bool strict = false;   ///< makes a shard without an end marker an error; otherwise the first one is reported once
  /// Shards that may be damaged at the start, or missing if they have an index; for a session with on_damage.
  std::size_t damaged_shards_at_most = 0;
  /// Fields that a sample must have; others are left out. "jpg;png": one of them; {"jpg;png", "txt"}: both entries.
  required_fields having{};
  std::optional<key_list> only{};   ///< samples to use, by key; not set: all
  key_list without{};               ///< samples to leave out, by key
  /// Whether to use the sample with this key in this shard.
  std::function<bool(std::string_view key, std::string_view shard)> where{};
  /// How often a pass has the sample; 0: never. Not set: once.
  std::function<std::size_t(std::string_view key, std::string_view shard)> repeats{};
  /// Makes the entry points of a field, places where its decoder may start; nothing for a field that has none. It is
  /// called, by many threads at once, for all payloads of shards whose indexes were kept without entry points, once.
  /// Not set: those that the indexes have are used.
  std::function<std::vector<std::byte>(std::string_view field, std::span<const std::byte> payload)> entries{};
};

namespace detail {

/// The source that indexed_shards() makes: tar shards with an index each.
class indexed_shards_source {
 public:
  using item = record;
  using planned = indexed_run<shard_data>;

  indexed_shards_source(std::vector<std::string> names, const indexed_shards_options& o);

  std::unique_ptr<planned> plan(const indexed_run_options& o) const { return std::make_unique<planned>(data_, o); }

  const std::shared_ptr<shard_data>& data() const noexcept { return data_; }

  // The members of every source. The session calls plan() instead, so open() has no definition.
  std::size_t shards() const noexcept { return data_->counts().size(); }
  planned::source_type::reader open(std::size_t shard, std::uint64_t epoch) const;

 private:
  std::shared_ptr<shard_data> data_;
};

}  // namespace detail

/// Returns a flow of records in an exact order. `names` is a pattern or a list, as for list_shards(). Throws
/// setup_error if a shard is missing or compressed, data_error if one is damaged.
template <detail::file_names Names = std::vector<std::string>>
auto indexed_shards(const Names& names, const indexed_shards_options& options = {}) {
  using source = detail::indexed_shards_source;
  detail::folder_rule rule = detail::shards_of_a_folder;
  rule.unreadable_at_most = options.damaged_shards_at_most;
  const detail::shard_listing_options listing{.rule = rule, .at = options.storage, .notice = options.notice};
  return detail::flow<record, source>{{}, source(detail::list_files(names, listing), options), options.seed};
}

/// Exists for its message: the compiler shows it for a second argument that is not options.
template <class Names, class Other>
  requires(!std::is_convertible_v<const Other&, indexed_shards_options>)
__attribute__((unavailable("millrace: the second argument of indexed_shards() is its options. Name the option, such as "
                           "indexed_shards(names, {.seed = 7}); several names are one list.")))
detail::broken_flow indexed_shards(const Names&, const Other&);

}}  // namespace millrace

#ifdef MILLRACE_COMPILED   // impl/indexed_shards.inl instantiates these
#include <millrace/read/stage/shard_read_stage.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<record>;
extern template class jitter_order<record>;
extern template class indexed_source<shard_data, exact_order>;
extern template class indexed_run<shard_data>;
extern template class reorder_buffer<indexed_source<shard_data, exact_order>>;
extern template class read_stage_base<indexed_source<shard_data, exact_order>>;
extern template class shard_read_stage<indexed_source<shard_data, exact_order>>;

}}}  // namespace millrace::detail
#endif

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/indexed_shards.inl>
#endif
