// Loads the indexes of many shards, and builds and stores the missing ones.
//
//   auto all = mr::detail::build_indexes(shards, {.files = {.cache_folder = "/scratch/indexes"}});
//   all.indexes[k]->samples();                       // samples of shards[k]; 0 for a compressed one: see state()
//   all.counts.built;
//   // after heads_only, where indexes[k] may be null
//   auto one = mr::detail::index_of(shards[k], all.heads[k], options);
//
// With heads_only, build_indexes() reads only the head (the part of fixed size) of an index that is good and whose
// shard is complete. 1,281 indexes then need 10 ms instead of 70 ms. index_of() reads the rest later, and builds the
// index again if the index file is damaged.
// With heads_only, a shard of a storage needs only one request if the index is stored next to the shard. Its head has
// `identified` = false, because the size of the shard is compared with the index only when the shard is opened. All
// other shards of a storage are read completely; before that, a notice reports how many requests and bytes this needs.
// If a shard has the size but not the modification time that its index records, the index is built again with the known
// checksums. Therefore reading a sample that was edited in place is an error.
// Several shards are processed in parallel. Several processes may concurrently build the indexes of the same shards,
// and share the stored files. An index that cannot be stored (a read-only folder) is still used, and counted. A damaged
// shard is not an error here: its index records the damage. Such an index does not overwrite an index that has the
// samples after the damage. A shard without an end marker counts as complete; its index records the missing marker.
// With `entries`, build_indexes() reads all payloads, and adds entry points to indexes without entry points
// (entries_build.hpp). This requires that the index can be stored, because entries are always read from the index file.
// Errors: io_error for the first shard in the list that cannot be read, or that changes during the scan; data_error for
// a shard without an end marker if a sidecar file states more samples; setup_error for a shard beyond the limits of an
// index (shard_index.hpp), and, with `plain_only`, for a compressed shard.
// Threads: starts its own threads and waits for them.
// Temporary indexes of killed processes are removed from folders in which an index is built.
// Progress is shown only with `notices`, and only after the first second: on a terminal four times per second,
// otherwise as a notice every ten seconds.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/index/entries/entries_build.hpp>
#include <millrace/io/index/format/index_file.hpp>
#include <millrace/sync/slow_step.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr unsigned max_stored_requests = 64;   ///< indexes of a storage that are requested concurrently

/// Options of build_indexes().
struct index_build_options {
  index_file_options files{};
  bool store = true;              ///< writes new indexes to files; else they are in memory only
  bool heads_only = false;       ///< reads only the heads of good indexes of complete shards
  unsigned threads = 0;          ///< default 0: one for each usable core, at most eight without `entries`; 64 for a
                                 ///< storage
  notice_outlet* notices = nullptr;   ///< receives progress and stalls; null: no progress, and lines on stderr
  std::uint64_t report_after_ns = 10'000'000'000;   ///< a stall of this length is reported (sync/slow_step.hpp)
  bool older_of_damaged = false;   ///< uses a damaged shard's index from before the damage, if any
  entry_maker entries{};           ///< builds missing entry points; default: they stay missing
  bool plain_only = false;         ///< throws compressed_shard for the first compressed shard
};

/// The error for a compressed shard, which cannot have an index.
class compressed_shard : public setup_error {
 public:
  explicit compressed_shard(const std::string& shard)
      : setup_error("the shard " + printable(shard) + " is compressed: it cannot be read sample by sample",
                    "Unpack it to plain tar, or stream the shards: .index = mr::index::off") {}
};

/// The number of shards with each outcome, and the amount of data that was read.
struct index_build_counts {
  std::uint64_t loaded = 0;              ///< shards with a good index
  std::uint64_t built = 0;               ///< shards without an index
  std::uint64_t rebuilt_stale = 0;       ///< shards whose index records another size, time or version
  std::uint64_t rebuilt_damaged = 0;     ///< shards whose index was damaged
  std::uint64_t not_stored = 0;            ///< shards whose index could not be written
  std::uint64_t compressed = 0;          ///< compressed shards, which cannot have an index
  std::uint64_t damaged_shards = 0;
  std::uint64_t samples = 0;             ///< samples of all shards
  std::uint64_t scanned_bytes = 0;       ///< total size of the scanned shards
  std::uint64_t scanned_members = 0;     ///< members of the scanned shards
  std::uint64_t entries_built = 0;        ///< shards that got entry points
  std::uint64_t entries_inspected = 0;   ///< samples that were read for entry points
  std::uint64_t entries_payload_bytes = 0;   ///< bytes of these samples
  std::uint64_t entries_unreadable = 0;      ///< damaged samples among them
};

/// The result of build_indexes().
struct shard_indexes {
  std::vector<std::shared_ptr<shard_index>> indexes{};   ///< one for each shard, in list order
  std::vector<index_summary> heads{};                    ///< one for each shard; with heads_only, its index may be null
  index_build_counts counts{};
  std::vector<std::size_t> damaged{};                    ///< damaged shards whose index is from before the damage
  std::uint64_t requests = 0;                            ///< requests of indexes in a storage
  std::vector<std::size_t> touched{};                    ///< shards whose index has their size but another time
  std::string store_failure{};                            ///< the reason for the first index that was not stored
};

/// The origin of a shard's index.
enum class index_outcome {
  fresh,              ///< from its file or from the storage
  touched,            ///< built with the checksums of its file, which records another time of the shard
  built,              ///< built without its file
  older_of_damaged,   ///< from its file, which was written before the damage of the shard
  cut                 ///< built from a damaged shard; the index file, which has more samples, is kept
};

/// The index of one shard.
struct index_result {
  shard_index index{};
  index_outcome outcome = index_outcome::fresh;
  index_file_state before = index_file_state::good;   ///< the state of its file
  std::string store_failure{};                         ///< empty if nothing failed

  /// Returns whether the index may be written to its file again.
  bool may_be_stored() const noexcept {
    return store_failure.empty() && outcome != index_outcome::older_of_damaged && outcome != index_outcome::cut;
  }
};

/// One run of build_indexes().
class index_builder {
 public:
  index_builder(std::span<const std::string> shards, const index_build_options& options);

  shard_indexes run();

 private:
  using step = void (index_builder::*)(std::size_t shard, block_pool& pool);

  /// Calls `act` for each unfinished shard, on several threads.
  void for_each_shard(step act);
  void work(step act) noexcept;
  /// Adds the head of the stored index of a shard, or records that the shard has to be read.
  void query_storage(std::size_t shard, block_pool& pool);
  /// Reports how many bytes of a storage have to be read.
  void report_scan() const;
  /// Adds the index or the head of a shard to the result.
  void process(std::size_t shard, block_pool& pool);
  /// Returns the size and time of a shard; nothing if the shard cannot be read and its older index was added instead.
  std::optional<shard_identity> identify(std::size_t shard, const std::string& index_file);
  /// Adds the index of a damaged shard from before the damage, if it exists and the options allow it.
  bool add_older(std::size_t shard, const std::string& index_file);
  /// Loads the index from its file. Returns nothing if the head was enough, and was added.
  std::optional<loaded_index> load_file(std::size_t shard, const std::string& index_file,
                                        const shard_identity& identity);
  /// Builds and stores the index of a shard. `before` is the loaded index, whose state is not good.
  index_result build(std::size_t shard, const std::string& index_file, const shard_identity& identity,
                    const loaded_index& before, block_pool& pool);
  /// Sets the outcome if the index file has more samples of a damaged shard. Uses the index in the file if the options
  /// allow it.
  void compare_with_older(const std::string& index_file, index_result& built) const;
  void add_head(std::size_t shard, const index_summary& head);
  /// Removes the temporary files of killed processes from the folder of the index; once for each folder.
  void clean_folder_of(const std::string& index_file);
  void store(const std::string& index_file, shard_index& index, const entry_pieces* entries = nullptr);
  /// Builds the missing entry points of an index, and stores the index.
  void add_entries(const std::string& path, const std::string& index_file, shard_index& index);
  /// Same as add_entries(), but records a failure in `result`.
  void try_to_add_entries(const std::string& path, const std::string& index_file, index_result& result);
  bool needs_entries(bool built) const noexcept {
    return options_.entries && !built && options_.store && options_.files.can_store();
  }
  shard_index scan(const std::string& path, const shard_identity& identity, block_pool& pool) const;
  /// Adds the head of the index next to a shard of a storage, if it is good. Does not query the shard.
  bool add_stored_head(std::size_t shard);
  /// Uses the index next to a shard of a storage, if it is good.
  void use_stored(std::size_t shard, const shard_identity& identity, loaded_index& index) const;
  /// Adds the index of a shard to the result.
  void add(std::size_t shard, index_result&& result);
  void count(const shard_index& index, index_file_state before) noexcept;

  /// Overwrites the line on a terminal; elsewhere delivers a notice every ten seconds.
  void show_progress(bool last);

  std::span<const std::string> shards_;
  const index_build_options& options_;
  slow_step* step_ = nullptr;   // belongs to run()
  bool terminal_;
  std::size_t threads_ = 1;
  unsigned threads_of_shard_ = 1;   // threads that build the entry points of a shard
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> failed_from_{~std::size_t{0}};   // no shard after this one is started
  std::mutex mutex_;                                        // guards all members below
  shard_indexes result_;
  std::exception_ptr failure_;
  std::vector<std::optional<shard_identity>> to_scan_;   // shards of a storage that have no index
  std::set<std::string> cleaned_;   // folders
  std::size_t done_ = 0;
  std::vector<char> is_done_;   // per shard; a shard belongs to one thread at a time
  const std::int64_t start_ns_ = read_clock_ns(CLOCK_MONOTONIC);
  std::int64_t shown_ns_ = start_ns_;
  bool shown_once_ = false;
};

/// Loads or builds the index of each shard. Throws the errors described at the top of the file.
shard_indexes build_indexes(std::span<const std::string> shards, const index_build_options& options = {});

/// Delivers a warning about indexes, with the reason.
void report_index_trouble(notice_outlet& to, const std::string& problem, std::string_view reason);

/// Loads the index whose head was read before. Throws data_error if the shard has changed since then.
std::shared_ptr<shard_index> index_of(const std::string& shard, const index_summary& head,
                                      index_build_options options = {});

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/index_build.inl>
#endif
