// Loads and stores index files. An index file is stored next to its shard, or in one folder for all shards.
//
//   const std::string path = mr::detail::index_path("train-000.tar");   // "train-000.tar.millrace-index"
//   const auto identity = mr::detail::identify_shard("train-000.tar");
//   auto file = mr::detail::load_index(path, identity);
//   if (file.state != mr::detail::index_file_state::good) {             // file.reason is the reason
//     auto old = std::exchange(file.index, mr::detail::scan_shard(source, pool));   // tar_index_scan.hpp
//     file.index.identify(identity);   // required: an index without an identity is never valid
//     file.index.copy_checksums_from(old);   // `old` has checksums only in the state `touched`
//   }
//   mr::detail::store_index(path, file.index);   // call it again after the index has learned checksums
//
// An index is valid only for a shard with the recorded size and modification time (in ns). If only the time differs, a
// new index is built, and it may reuse the checksums of the old index. A damaged index is never used. An index may be
// removed at any time.
// Many processes may call store_index() concurrently. Each call locks the old file, copies its checksums and entry
// points (positions where a decoder may start), and replaces the file in one step. Entry points are copied only if all
// members are at the same offsets. On a file system without locks, concurrent writers may lose checksums. Later reads
// compute lost checksums again, and record them in the index.
// Errors: io_error if the shard or the index cannot be read or written. Threads: any thread may call the functions, but
// concurrent calls of store_index() must receive different shard_index objects.
#pragma once

#include <millrace/io/file/storage.hpp>
#include <millrace/io/file/unique_fd.hpp>
#include <millrace/io/index/format/index_format.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options for the files of indexes.
struct index_file_options {
  /// The folder for indexes. By default (empty), each index is stored next to its shard. A missing folder is created,
  /// but not its parent.
  std::string cache_folder{};
  /// The storage of the shards. If this is not the local file system, an index next to a shard is read, but never
  /// written.
  millrace::storage storage{};

  /// Returns whether indexes can be stored.
  bool can_store() const noexcept { return storage.is_local() || !cache_folder.empty(); }
};

/// The validity of an index file.
enum class index_file_state {
  good,
  missing,
  stale,   ///< the size of the shard, the index version or the kind of machine differs
  /// Only the modification time of the shard differs. The checksums of unmoved members can be reused.
  touched,
  damaged
};

/// An index, or the reason why it cannot be used.
struct loaded_index {
  index_file_state state = index_file_state::missing;
  std::string reason{};   ///< the reason; empty if the state is `good`
  shard_index index{};    ///< valid if the state is `good` or `touched`
};

/// The result of store_index().
struct stored_index {
  bool written = false;
  std::uint64_t learned_checksums = 0;       ///< checksums copied from the file
  std::uint64_t conflicting_checksums = 0;   ///< checksums that differ from the file; the values of the file are used
};

/// The encoded entry points of all members of a shard, in the order of the members. Their bytes are divided into
/// pieces, which are the inner vectors. A piece may begin or end inside the entry points of a member.
using entry_pieces = std::vector<std::vector<std::byte>>;

/// The file name suffix of indexes.
inline constexpr std::string_view index_ending = ".millrace-index";

/// Returns the path of the shard's index. In a cache folder, the name contains a digest of the shard's full path, so
/// that shards with equal file names have different indexes.
std::string index_path(const std::string& shard, const index_file_options& options = {});

/// Throws the io_error for a failed call. `problem` describes the call, such as "cannot open the index". `reason` is an
/// errno.
[[noreturn]] void fail_index(std::string_view problem, int reason, const std::string& path);

/// Opens an index file. On failure, returns no file and sets errno. Does not block if the path is a pipe.
unique_fd open_index(const std::string& path, int flags) noexcept;

/// Fills `buffer`. Returns false if the file ends early (errno is 0), or a read fails (errno is the reason).
bool read_index(const unique_fd& file, std::uint64_t offset_bytes, std::span<std::byte> buffer) noexcept;

/// Reads and checks the head of the index. Returns the state, and the reason, which is empty if the state is `good`.
std::pair<index_file_state, std::string> read_index_head(const unique_fd& file, const std::string& path,
                                                         const shard_identity& shard, index_front& front);

/// Reads and checks an index, except its entry points.
loaded_index load_open_index(const unique_fd& file, const std::string& path, const shard_identity& shard);

/// Returns the current size and time of a shard. Throws io_error if the system or the storage does not return both.
shard_identity identify_shard(const std::string& path, const storage& at = {});

/// Loads the index of a shard, or returns the reason why it cannot be used. Throws io_error if the file cannot be read.
loaded_index load_index(const std::string& path, const shard_identity& shard);

/// Loads an index without a comparison with its shard. The state describes only the index.
loaded_index load_index_without_shard(const std::string& path);

/// The content of the head of an index. One small read loads the head. Damage in the rest of the file is not detected.
struct index_summary {
  index_file_state state = index_file_state::missing;
  std::uint32_t samples = 0, members = 0, known_checksums = 0;
  std::uint64_t fingerprint = 0;
  bool shard_is_complete = false;
  bool without_end_marker = false;   ///< true if the shard is complete, but has no end marker
  bool entries_built = false;        ///< true if all payloads were searched for entry points
  bool entries_in_storage = false;   ///< true if the index is stored next to its shard in a storage
  bool identified = true;            ///< false if the version of a shard in a storage is not known yet
  bool of_set_index = false;         ///< true if the head is from a set index (set_index.hpp)
  std::uint64_t entry_bytes = 0;     ///< size of the encoded entry points of all members
  shard_identity shard{};            ///< recorded size and time of the shard
  std::uint64_t index_bytes = 0;     ///< size of the file without the bytes of its entry points
};
/// Reads the head of an index. Throws io_error if the file cannot be read.
index_summary summarize_index(const std::string& path, const shard_identity& shard);
/// Returns the content of the head of `index`.
index_summary summarize_index(const shard_index& index);

/// Loads the index that is stored next to a shard of a storage. The index is not compared with the shard, and the
/// modification time in the index has no meaning. The state of the result is `good` if the index is intact.
/// `file_bytes` is the expected size of the index file, or 0 if unknown. Throws io_error if the file cannot be read.
loaded_index load_stored_index(const storage& at, const std::string& shard, std::uint64_t file_bytes = 0);
/// Reads the head of the index next to a shard of a storage. If the state is `good`, `identified` is false.
index_summary summarize_stored_index(const storage& at, const std::string& shard);

/// Copies the checksums in the file to `index`. Then replaces the file if it is not a valid index of the same members,
/// if it lacks a checksum of `index`, or if `entries` is not null. Does nothing for a compressed shard. Throws io_error
/// if the file cannot be read or written. `entries` contains the encoded entry points, whose locations are in
/// index.entries(). If `entries` is null, the encoded entry points in the old file are copied.
stored_index store_index(const std::string& path, shard_index& index, const entry_pieces* entries = nullptr);

/// Removes temporary index files that killed processes left in the folder of this index (atomic_file.hpp). Call this
/// function once before many calls of store_index().
void remove_abandoned_indexes(const std::string& path);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/index_file.inl>
#endif
