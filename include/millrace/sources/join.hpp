// join: joins parallel sets of shards by key. millrace.hpp does not include this header.
//
//   #include <millrace/join.hpp>
//   auto flow = mr::join(mr::shards("images-{000..146}.tar", {.seed = 7}), mr::shards("embeddings-*.tar"),
//                        {.missing = mr::missing::skip})
//             | mr::shuffle({.window = 8192}) | mr::map(prepare) | mr::batch<example>({.size = 256});
//
// Delivers a record for each sample of the first set. A partner of a sample is a sample with the same key in another
// set. The record has the fields of the sample and of all its partners. In the example, r["jpg"] is from the first set,
// and r["npy"] is from the second set. The key, shard and offset of the record are those of the sample in the first
// set. The sets may have different shards and different orders. join(vector, options) joins any number of sets.
// The partners are found in the indexes, before any sample is read. A notice at the start states how many samples have
// partners. The order, ranks, resume points, digests and on_damage work as for shards() with an index. Only the samples
// of the first set count. The seed of the flow is the seed of the first set. Each set may have its own options, such as
// fields, storage, where or only. A damaged sample of any set damages the record.
// Keys: if several samples of the first set have the same key, they share one partner. A sample may have at most one
// partner in each of the other sets. With same_shard_names, partners are searched only in the shard with the same file
// name.
// Errors: the constructor of the session throws setup_error for
// - a set without an index (compressed, or .index = off)
// - field names that are equal in two sets, after join_options::prefixes are added
// - a sample with two partners in one set
// - sets without a common key
// - with missing::error, a sample without a partner
// - a stage that changes the number of rows
//
// All other errors are those of shards().
// Cost: for each sample, one more read and about 0.3 us in each of the other sets. No payload is copied. Store partners
// in the same order in all sets. Otherwise each partner needs a separate read. Threads: as for shards(). Copies of a
// flow share the indexes and the partners.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/joined_data.hpp>
#include <millrace/sources/shards.hpp>

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// The source that join() returns.
class joined_source {
 public:
  using item = record;
  using planned = indexed_run<joined_data>;

  /// Throws setup_error for fewer than two sets.
  joined_source(std::vector<shards_source> sets, join_options options);

  /// Returns true. The first call reads or builds the indexes of all sets, and finds the partners. Throws setup_error
  /// for a set without an index, and the errors of joined_data.
  bool uses_index(const index_use& use) const;
  /// Returns the run of a session. Requires an earlier call of uses_index() for a session of the same kind (with or
  /// without on_damage).
  owner<planned_run> plan(const indexed_run_options& o) const;

  // Every source needs these members. open() is only declared, because the session calls plan() instead.
  std::size_t shards() const noexcept { return sets_.front().shards(); }
  planned::source_type::reader open(std::size_t shard, std::uint64_t epoch) const;

 private:
  struct joined {
    std::mutex mutex{};                       // guards `data`
    std::shared_ptr<joined_data> data[2]{};   // [1] is for sessions with on_damage
  };

  std::vector<shards_source> sets_;
  join_options options_;
  std::shared_ptr<joined> joined_;   // shared by copies
};

/// True if a flow consists only of shards().
template <class Flow>
inline constexpr bool is_shards = false;
template <>
inline constexpr bool is_shards<flow<record, shards_source>> = true;

}   // namespace detail

/// Returns a flow of the records of `sets[0]`. Each record also has the fields of the samples with the same key in the
/// other sets. Throws setup_error for fewer than two sets.
template <class Flow>
  requires detail::is_shards<Flow>
auto join(const std::vector<Flow>& sets, const join_options& options = {}) {
  using source = detail::joined_source;
  std::vector<detail::shards_source> all;
  for (const Flow& set : sets) all.push_back(set.source);
  return detail::flow<record, source>{{}, source(std::move(all), options), sets.empty() ? 0 : sets.front().seed};
}

/// Returns the join of two sets.
template <class First, class Second>
  requires(detail::is_shards<First> && detail::is_shards<Second>)
auto join(const First& first, const Second& second, const join_options& options = {}) {
  return join(std::vector{first, second}, options);
}

/// Overload for an argument that is not a set of shards. The compiler shows its error message.
template <class First, class Second>
  requires(!(detail::is_shards<First> && detail::is_shards<Second>) &&
           !std::is_convertible_v<const Second&, join_options> && !detail::is_broken_flow<First> &&
           !detail::is_broken_flow<Second>)
// clang-format off
__attribute__((unavailable("millrace: join() joins sets of shards: write join(shards(...), shards(...), options). Put "
                           "shuffle, map and other stages after join().")))
detail::broken_flow join(const First&, const Second&, const join_options& = {}) {
  return {};
}
// clang-format on

/// Overload for flows whose mistake was already reported.
template <class First, class Second>
  requires(detail::is_broken_flow<First> || detail::is_broken_flow<Second>)
detail::broken_flow join(const First&, const Second&, const join_options& = {}) {
  return {};
}

}}   // namespace millrace

#ifdef MILLRACE_COMPILED   // impl/join.inl instantiates these
#include <millrace/read/stage/shard_read_stage.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class indexed_source<joined_data, exact_order>;
extern template class indexed_run<joined_data>;
extern template class reorder_buffer<indexed_source<joined_data, exact_order>>;
extern template class read_stage_base<indexed_source<joined_data, exact_order>>;
extern template class shard_read_stage<indexed_source<joined_data, exact_order>>;

}}}   // namespace millrace::detail
#endif

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/join.inl>
#endif
