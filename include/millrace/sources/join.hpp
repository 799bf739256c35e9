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
// partners. The order, ranks, resume points, digests and on_damage work as for shards() with an index. The order lists
// only samples of the first set. The seed of the flow is the seed of the first set. Each set may have its own options,
// such as fields, storage, where or only. A damaged sample of any set damages the record.
// Keys: if several samples of the first set have the same key, they share the same partner in each of the other sets. A
// sample may have at most one partner in each of the other sets. With same_shard_names, partners are searched only in
// the shard with the same file name.
// Errors: the constructor of the session throws setup_error for
// - a set without an index (compressed, or .index = off)
// - field names that are equal in two sets, after join_options::prefixes are added
// - a sample with two partners in one set
// - sets without a common key
// - with missing::error, a sample without a partner
// - expand, filter, pack, take, bucket, or a shuffle that is not directly after the source
//
// All other errors are those of shards().
// Cost in each of the other sets: about 0.3 us and at most one read for each sample. No payload is copied. Store
// partners in the same order in all sets, so that one read can fetch several partners. Threads: as for shards(). Copies
// of a flow share the indexes and the partners.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/index/set/shard_sets.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/order/exact_order.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/shards.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// Joins indexed data sets by the keys of their samples. joined_data is the data set of an indexed_run over a join.
//
// A partner of a sample is a sample with the same key in another set. The constructor finds the partners in the
// indexes, and reads no sample.
// Memory: 8 bytes for each joined sample in each set. While the constructor searches a set, it also needs 32 bytes for
// each sample of this set. The indexes stay in memory.
// Time: the constructor reads all indexes, and sorts the keys of each set except the first.
// Errors: the errors of shard_data, and setup_error for keys and fields that cannot be joined.
// Threads: any number of threads may call read() at the same time. Everything else is immutable.

/// The treatment of a sample of the first set that has no partner in another set.
enum class missing : std::uint8_t {
  error,    ///< the session does not start
  skip,     ///< the sample is omitted
  partial   ///< the record has only the fields of the sets that have the key
};

/// Options of join().
struct join_options {
  millrace::missing missing = millrace::missing::error;   ///< treatment of samples without a partner
  /// A prefix for the field names of each set, such as {"", "b."}. Sets after the end of the list have no prefix.
  std::vector<std::string> prefixes{};
  /// If true, a sample has partners only in shards with the same file name. Set this option if keys repeat in every
  /// shard.
  bool same_shard_names = false;
};

namespace detail {

/// Reads several data sets together. A joined sample is a sample of the first set with the fields of its partners.
class joined_data : public shard_sets {
 public:
  using item = record;

  /// Finds the partners of all samples. The comment before `missing` lists the errors.
  joined_data(std::vector<std::shared_ptr<shard_data>> sets, join_options options, notice_outlet& notices);

  /// Returns the number of joined samples in each shard of the first set.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  /// Returns the identity of a joined sample, which is the identity of its sample in the first set.
  std::uint64_t id_of(const located_sample& s) const noexcept { return sets_[0]->id_of(in_set(s, 0)); }
  /// Returns a text with the number of chosen samples of each set. Returns "" if the sets have no options that choose
  /// samples.
  std::string choice_text() const;
  /// Returns the size of the joined samples in all sets. The size is estimated from the share of joined samples.
  std::uint64_t size_bytes() const noexcept;
  /// Returns a fingerprint. The upper half identifies the first set, and the lower half the other sets and the
  /// partners.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  /// Returns shard, key and offset of a sample in the first set.
  error_location location_of(const located_sample& s) const { return sets_[0]->location_of(in_set(s, 0)); }
  /// Returns the location of another part of a sample whose members are not adjacent in its shard.
  std::optional<other_piece> other_piece_of(const error_location& sample) const;
  /// Throws setup_error if `then`, the fingerprint in a resume point, belongs to another join.
  void check_same(std::uint64_t then) const;

  /// Decides, for each set, whether to read small samples in blocks. Call it before the first read(). Returns the
  /// maximum bytes of cached blocks and entry points of all sets.
  std::size_t expect(const expected_order& order);
  /// Announces shards to the storages: these shards of the first set, and all shards of other sets that contain
  /// partners of samples in these shards.
  void expect_shards(std::span<const std::size_t> shards) const;
  /// Works like shard_data::read().
  std::size_t read(std::span<const located_sample> samples, std::span<record> records, std::exception_ptr& failure);
  /// Works like shard_data::is_given_up().
  bool is_given_up(const std::exception_ptr& failure) const noexcept;

  /// Returns a text with the number of samples, and the number of partners in each set.
  std::string describe(const exact_order&) const;

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  static constexpr std::uint64_t upper_half = ~std::uint64_t{0} << 32;

  struct set_facts {
    // samples: number in this set; missing: samples of the first set without a partner in this set
    std::uint64_t samples = 0, missing = 0;
    std::uint64_t unused = 0;      // samples of the set that are not a partner
    std::uint64_t used = 0;        // joined samples with a partner in this set
    std::uint64_t neighbors = 0;   // joined samples whose partner directly follows the previous partner
    std::string first_missing{};   // key of the first sample without a partner
  };
  class key_table;

  static std::uint64_t packed(std::uint64_t shard, std::uint64_t number) noexcept { return shard << 32 | number; }
  static located_sample unpacked(std::uint64_t place) noexcept {
    return {.shard = place >> 32, .index = place & ~upper_half};
  }
  /// Returns the location of a joined sample in a set that contains it.
  located_sample in_set(const located_sample& s, std::size_t set) const noexcept {
    return unpacked(places_[set][first_of_[s.shard] + s.index]);
  }
  std::string name_of(std::size_t set) const;
  void check_fields() const;
  /// Finds the partner in `set` of every sample of the first set. Stores `none` for a sample without a partner.
  void find_partners(std::size_t set);
  /// Throws setup_error if no sample has a partner in `set`. With missing::error, also throws setup_error if any sample
  /// has no partner.
  void check_partners(std::size_t set, const key_table& keys) const;
  /// Removes the samples that lack a partner in at least one set.
  void skip_missing();
  void count_shards();
  /// Reads the samples of one set. If a joined sample has no partner in this set, its record remains empty. Returns the
  /// number of samples before the first error, which is stored in `failure`.
  std::size_t read_set(std::size_t set, std::span<const located_sample> samples, std::span<record> records,
                       std::exception_ptr& failure);

  const join_options options_;
  block_pool pool_;
  std::vector<std::vector<std::uint64_t>> places_;   // for each set, the location of each joined sample
  std::vector<std::uint64_t> counts_, first_of_;     // for each shard of the first set
  std::vector<set_facts> facts_;
  std::uint64_t fingerprint_ = 0, skipped_ = 0;
};

}   // namespace detail

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

/// Overload for an argument that is not a set of shards. The compiler reports the message of the `unavailable`
/// attribute.
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
