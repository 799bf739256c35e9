// Loads the indexes (index_file.hpp) of many shards. Builds and stores the missing ones.
//
//   auto all = mr::detail::build_indexes(shards, {.files = {.cache_folder = "/scratch/indexes"}});
//   all.indexes[k]->samples();                       // samples of shards[k]; 0 if state() is compressed
//   all.counts.built;
//   // after a call with heads_only, which may leave indexes[k] null:
//   auto one = mr::detail::index_of(shards[k], all.heads[k], options);
//
// With heads_only, build_indexes() reads only the head (the first part, of fixed size) of each valid index. index_of()
// reads the rest later.
//
// Shards in a storage (io/file/storage.hpp): an index that is stored next to its shard is used. A shard without a valid
// index is read completely. With heads_only, a notice first reports how many requests and bytes these reads need.
//
// Changed shards: if only the modification time of a shard has changed, its index is built again. The new index keeps
// the known checksums. Therefore, if a sample was edited in place, reading this sample is an error.
// Damaged shards: damage is not an error here. The index describes the damage. An older index with more samples is not
// overwritten.
//
// Several processes may build the indexes of the same shards at the same time. If an index cannot be stored, for
// example in a read-only folder, it is used from memory and counted.
// With `entries`, build_indexes() also builds entry points (positions where a decoder may start, see entries_build.hpp)
// for each index that lacks them. For this purpose, it reads all payloads of the shard. Entry points are built only if
// the indexes can be stored.
//
// Errors: if several shards have errors, the error of the first such shard in the list is thrown.
// - io_error if a shard cannot be read, or changes during the scan
// - data_error if a shard has no end marker, and fewer samples than a sidecar file states (declared_samples.hpp)
// - setup_error if a shard exceeds the limits of an index (shard_index.hpp)
// - setup_error if a shard is compressed, and `plain_only` is set
//
// Threads: starts threads and waits for them.
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

/// Maximum number of concurrent requests for indexes in a storage.
inline constexpr unsigned max_stored_requests = 64;

/// Options of build_indexes().
struct index_build_options {
  index_file_options files{};
  bool store = true;         ///< writes new indexes to files; if false, they are in memory only
  bool heads_only = false;   ///< reads only the heads of valid indexes of complete shards
  /// Number of threads. For a remote storage, 0 means 64 threads. For local files, 0 means one thread per core if
  /// `entries` is set, and otherwise at most eight threads.
  unsigned threads = 0;
  notice_outlet* notices = nullptr;   ///< receives progress and stalls; if null, only stalls are reported, on stderr
  std::uint64_t report_after_ns = 10'000'000'000;   ///< minimum length of a stall that is reported (sync/slow_step.hpp)
  bool older_of_damaged = false;                    ///< uses the index that a damaged shard had before the damage
  entry_maker entries{};                            ///< builds missing entry points; if empty, none are built
  bool plain_only = false;                          ///< throws compressed_shard for the first compressed shard
};

/// The error for a compressed shard, which cannot have an index.
class compressed_shard : public setup_error {
 public:
  MILLRACE_RARE explicit compressed_shard(const std::string& shard)
      : setup_error("the shard " + printable(shard) + " is compressed: it cannot be read sample by sample",
                    "Unpack it to plain tar, or stream the shards: .index = mr::index::off") {}
};

/// The number of shards with each result, and the amount of data that was read.
struct index_build_counts {
  std::uint64_t loaded = 0;            ///< shards with a valid index
  std::uint64_t built = 0;             ///< shards that had no index before the call
  std::uint64_t rebuilt_stale = 0;     ///< shards whose size, time or index version had changed
  std::uint64_t rebuilt_damaged = 0;   ///< shards whose index was damaged
  std::uint64_t not_stored = 0;        ///< shards whose index could not be written
  std::uint64_t compressed = 0;        ///< compressed shards, which cannot have an index
  std::uint64_t damaged_shards = 0;
  std::uint64_t samples = 0;                 ///< samples of all shards
  std::uint64_t scanned_bytes = 0;           ///< total size of the scanned shards
  std::uint64_t scanned_members = 0;         ///< members of the scanned shards
  std::uint64_t entries_built = 0;           ///< shards whose entry points were built
  std::uint64_t entries_inspected = 0;       ///< samples that were read for entry points
  std::uint64_t entries_payload_bytes = 0;   ///< payload bytes of entries_inspected
  std::uint64_t entries_unreadable = 0;      ///< damaged samples in entries_inspected
};

/// The result of build_indexes().
struct shard_indexes {
  std::vector<std::shared_ptr<shard_index>> indexes{};   ///< one for each shard, in list order
  std::vector<index_summary> heads{};                    ///< one for each shard, even if its index in `indexes` is null
  index_build_counts counts{};
  std::vector<std::size_t> damaged{};   ///< damaged shards whose index is from before the damage
  std::uint64_t requests = 0;           ///< number of requests for indexes in a storage
  std::vector<std::size_t> touched{};   ///< shards whose time differs from the time in their index
  std::string store_failure{};          ///< reason of the first failure to store an index
};

/// The origin of a shard's index.
enum class index_outcome {
  fresh,              ///< valid: loaded from its file or from the storage
  touched,            ///< built again with the checksums of the old file, because the shard's time has changed
  built,              ///< built, because its file was missing or not valid
  older_of_damaged,   ///< loaded from its file, which was written before the shard was damaged
  cut                 ///< built from a damaged shard; the older index file has more samples, and is not replaced
};

/// The index of one shard.
struct index_result {
  shard_index index{};
  index_outcome outcome = index_outcome::fresh;
  index_file_state before = index_file_state::good;   ///< the state of the index file before the call
  std::string store_failure{};                        ///< empty if nothing failed

  /// Returns whether the index may be written to its file again.
  bool may_be_stored() const noexcept {
    return store_failure.empty() && outcome != index_outcome::older_of_damaged && outcome != index_outcome::cut;
  }
};

/// One run of build_indexes().
class index_builder {
 public:
  index_builder(std::span<const std::string> shards, const index_build_options& options);
  MILLRACE_RARE ~index_builder() = default;

  shard_indexes run();

 private:
  using step = void (index_builder::*)(std::size_t shard, block_pool& pool);

  /// Calls `act` for each unfinished shard, on several threads.
  void for_each_shard(step act);
  void work(step act) noexcept;
  /// Adds the head of an index in a storage, or records that the shard has to be read.
  void query_storage(std::size_t shard, block_pool& pool);
  /// Reports how many bytes will be read from a storage.
  void report_scan() const;
  /// Adds the index or the head of a shard to the result.
  void process(std::size_t shard, block_pool& pool);
  /// Returns the size and time of a shard. If the shard cannot be read, calls add_older(). Returns nothing if
  /// add_older() added an index, and otherwise throws io_error.
  std::optional<shard_identity> identify(std::size_t shard, const std::string& index_file);
  /// Adds the older index of a damaged shard, if this index exists and the options allow its use. Returns whether the
  /// index was added.
  bool add_older(std::size_t shard, const std::string& index_file);
  /// Loads the index from its file. If the head suffices, adds the head and returns nothing.
  std::optional<loaded_index> load_file(std::size_t shard, const std::string& index_file,
                                        const shard_identity& identity);
  /// Builds and stores the index of a shard. `before` is the loaded file, whose state is not `good`.
  index_result build(std::size_t shard, const std::string& index_file, const shard_identity& identity,
                     const loaded_index& before, block_pool& pool);
  /// Compares the index of a damaged shard with its older index file, which may have more samples. Sets the outcome. If
  /// the options allow it, uses the older index.
  void compare_with_older(const std::string& index_file, index_result& built) const;
  void add_head(std::size_t shard, const index_summary& head);
  /// Removes the temporary files of killed processes from the folder of the index, once for each folder.
  void clean_folder_of(const std::string& index_file);
  void store(const std::string& index_file, shard_index& index, const entry_pieces* entries = nullptr);
  /// Builds the missing entry points of an index, and stores the index.
  void add_entries(const std::string& path, const std::string& index_file, shard_index& index);
  /// Calls add_entries(). On failure, records the reason in `result` instead of throwing.
  void try_to_add_entries(const std::string& path, const std::string& index_file, index_result& result);
  bool needs_entries(bool built) const noexcept {
    return options_.entries && !built && options_.store && options_.files.can_store();
  }
  shard_index scan(const std::string& path, const shard_identity& identity, block_pool& pool) const;
  /// If the index next to a shard of a storage is valid, adds its head and returns true. Sends a request for the index,
  /// but none for the shard.
  bool add_stored_head(std::size_t shard);
  /// If the index next to a shard of a storage is valid, stores it in `index`.
  void use_stored(std::size_t shard, const shard_identity& identity, loaded_index& index) const;
  /// Adds the index of a shard to the result.
  void add(std::size_t shard, index_result&& result);
  void count(const shard_index& index, index_file_state before) noexcept;

  /// Overwrites a line on a terminal. Without a terminal, delivers a notice every ten seconds.
  void show_progress(bool last);

  std::span<const std::string> shards_;
  const index_build_options& options_;
  slow_step* step_ = nullptr;   // owned by run()
  bool terminal_;
  std::size_t threads_ = 1;
  unsigned threads_of_shard_ = 1;   // threads that build the entry points of a shard
  std::atomic<std::size_t> next_{0};
  // The lowest number of a failed shard. Shards with higher numbers are not processed.
  std::atomic<std::size_t> failed_from_{~std::size_t{0}};
  std::mutex mutex_;   // guards the members below, except to_scan_ and is_done_
  shard_indexes result_;
  std::exception_ptr failure_;
  std::vector<std::optional<shard_identity>> to_scan_;   // shards of a storage that have no index
  std::set<std::string> cleaned_;                        // folders that clean_folder_of() has cleaned
  std::size_t done_ = 0;
  std::vector<char> is_done_;   // one flag per shard; one thread at a time processes a shard
  const std::int64_t start_ns_ = read_clock_ns(CLOCK_MONOTONIC);
  std::int64_t shown_ns_ = start_ns_;
  bool shown_once_ = false;
};

/// Loads or builds the index of each shard. The comment at the top of this header lists the errors.
shard_indexes build_indexes(std::span<const std::string> shards, const index_build_options& options = {});

/// Delivers a warning about indexes: `problem`, followed by the reason.
void report_index_trouble(notice_outlet& to, const std::string& problem, std::string_view reason);

/// Loads the index whose head was read earlier. Throws data_error if the shard has changed since then.
std::shared_ptr<shard_index> index_of(const std::string& shard, const index_summary& head,
                                      index_build_options options = {});

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/index_build.inl>
#endif
