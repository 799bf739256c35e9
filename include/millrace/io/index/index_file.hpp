// An index on disk, beside its shard or in one folder for all shards.
//
//   const std::string path = mr::detail::index_path("train-000.tar");   // "train-000.tar.millrace-index"
//   const auto identity = mr::detail::identify_shard("train-000.tar");
//   auto file = mr::detail::load_index(path, identity);
//   if (file.state != mr::detail::index_file_state::good) {             // file.reason says why
//     auto old = std::exchange(file.index, mr::detail::scan_shard(source, pool));   // tar_index_scan.hpp
//     file.index.identify(identity);                                    // without it, the file is never valid
//     file.index.take_checksums_of(old);                                // only a touched index has any
//   }
//   mr::detail::keep_index(path, file.index);                           // again after checksums were learned
//
// An index is valid only for a shard with the size and the time (in ns) for which it was made. If only the time
// differs, just its checksums are used, for the index that replaces it. A damaged index is never used: every cut and
// every flipped bit is detected. An index may be removed at any time.
// Many processes may call keep_index() at once. Each one locks the file, takes over the checksums in it, and replaces
// the file in one step. On a file system without locks, checksums that two processes write at the same moment may be
// lost; they are learned again later.
// Errors: io_error if the shard or the index cannot be read or written. Threads: any; only the index itself is shared.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/file/posix_files.hpp>
#include <millrace/io/file/unique_fd.hpp>
#include <millrace/io/index/index_format.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options for the files of indexes.
struct index_file_options {
  /// The folder for indexes; default empty: each index lies beside its shard. A missing folder is created; its parent
  /// has to exist.
  std::string cache_folder{};
};

/// Whether the file of an index can be used.
enum class index_file_state {
  good,
  missing,
  stale,     ///< made for a shard of another size, or by another library version or kind of machine
  touched,   ///< made for a shard of this size but another time: checksums of unmoved members are valid
  damaged
};

/// An index, or why there is none.
struct loaded_index {
  index_file_state state = index_file_state::missing;
  std::string reason{};   ///< why the index is not good
  shard_index index{};    ///< set if the state is good or touched
};

/// The result of keep_index().
struct kept_index {
  bool written = false;
  std::uint64_t learned_checksums = 0;       ///< checksums taken over from the file
  std::uint64_t conflicting_checksums = 0;   ///< different in both: the older one, from the file, is kept
};

/// Returns the path of the shard's index. In a cache folder the name contains a digest of the shard's whole path.
/// Shards of the same name therefore have different indexes.
inline std::string index_path(const std::string& shard, const index_file_options& options = {}) {
  constexpr std::string_view ending = ".millrace-index";
  if (options.cache_folder.empty()) return shard + std::string(ending);
  const std::unique_ptr<char, decltype(&std::free)> absolute(::realpath(shard.c_str(), nullptr), &std::free);
  const std::string whole = absolute ? absolute.get() : shard;
  const std::string digits = hex(digest_bytes(bytes_of(whole)), 16);
  const std::string name = whole.substr(whole.rfind('/') + 1).substr(0, 150);
  return options.cache_folder + (options.cache_folder.ends_with('/') ? "" : "/") + name + "-" + digits +
         std::string(ending);
}

/// Throws the io_error for a failed call on an index; `reason` is an errno.
[[noreturn]] inline void fail_index(std::string_view what, int reason, const std::string& path) {
  throw io_error(std::string(what) + ": " + reason_of(reason), "Check the file and its permissions, or name another "
                 "folder for indexes", {.stage = "index", .shard = path});
}

/// Opens an index; none, with errno, where that fails. Does not block on a pipe.
inline unique_fd open_index(const std::string& path, int flags) noexcept {
  int file = -1;
  do file = posix_files::open(path.c_str(), flags | O_NONBLOCK, 0666);
  while (file == -1 && errno == EINTR);
  return unique_fd(file);
}

/// Fills `buffer`. Returns false if the file ends before that, with errno 0, or if a read fails, with its errno.
inline bool read_index(const unique_fd& file, std::uint64_t offset_bytes, std::span<std::byte> buffer) noexcept {
  errno = 0;
  while (!buffer.empty()) {
    const ssize_t got = posix_files::read_at(file.get(), buffer.data(), std::min(buffer.size(), std::size_t{1} << 30),
                                             static_cast<off_t>(offset_bytes));
    if (got == -1 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset_bytes += static_cast<std::uint64_t>(got);
    buffer = buffer.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

/// Reads and checks the head. Returns the state and the reason, which is empty if the state is good. A touched index
/// has a sound head.
inline std::pair<index_file_state, std::string> read_index_head(const unique_fd& file, const std::string& path,
                                                                const shard_identity& shard, index_head& head) {
  using enum index_file_state;
  struct ::stat status {};
  if (posix_files::stat_open(file.get(), status) == -1) fail_index("cannot get the size of the index", errno, path);
  if (!S_ISREG(status.st_mode)) return {damaged, "it is not a regular file"};
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (file_bytes == 0) return {missing, "it is being made"};
  if (file_bytes < sizeof head) return {damaged, "it is cut"};
  if (!read_index(file, 0, std::as_writable_bytes(std::span(&head, 1)))) {
    if (errno != 0) fail_index("cannot read the index", errno, path);
    return {damaged, "it is cut"};
  }
  if (head.mark != index_head::right_mark) return {damaged, "it does not begin as an index does"};
  if (head.byte_order != index_head::right_order || head.version != index_head::right_version)
    return {stale, "it is of another version or kind of machine"};
  if (head.head_checksum != head.right_head_checksum()) return {damaged, "the checksum of its head is wrong"};
  if (head.shard_bytes != shard.size_bytes) return {stale, "the shard has another size"};
  if (std::string wrong = unsound(head, file_bytes); !wrong.empty()) return {damaged, std::move(wrong)};
  if (head.identity() != shard) return {touched, "the shard has another time"};
  return {good, {}};
}

/// Reads and checks a whole index.
inline loaded_index load_open_index(const unique_fd& file, const std::string& path, const shard_identity& shard) {
  loaded_index result;
  index_head head;
  std::tie(result.state, result.reason) = read_index_head(file, path, shard, head);
  if (result.state != index_file_state::good && result.state != index_file_state::touched) return result;
  index_columns columns(head.counts);
  const auto body = std::as_writable_bytes(
      std::span(columns.words.get(), static_cast<std::size_t>(head.counts.all_bytes() / 4)));
  if (!read_index(file, sizeof head, body) && errno != 0) fail_index("cannot read the index", errno, path);
  std::string wrong = errno == 0 && crc32c(body) == head.body_checksum ? unsound(head, columns)
                                                                       : "the checksum of its columns is wrong";
  if (wrong.empty()) result.index = shard_index(head.facts(), std::move(columns));
  else result = loaded_index{.state = index_file_state::damaged, .reason = std::move(wrong)};
  return result;
}

/// Returns the current size and time of a shard. Throws io_error if the system cannot tell them.
inline shard_identity identify_shard(const std::string& path) {
  struct ::stat status {};
  if (detail::posix_files::stat_path(path.c_str(), status) == -1)
    throw io_error("cannot get the size of the file: " + detail::reason_of(errno),
                   "Check the file, its permissions and its storage", {.stage = "index", .shard = path});
  return {.size_bytes = static_cast<std::uint64_t>(status.st_size), .modified_ns = detail::modified_ns(status)};
}

/// Loads the index of a shard, or says why it cannot be used. Throws io_error if the file cannot be read.
inline loaded_index load_index(const std::string& path, const shard_identity& shard) {
  const detail::unique_fd file = detail::open_index(path, O_RDONLY);
  if (file.get() != -1) return detail::load_open_index(file, path, shard);
  if (errno != ENOENT) detail::fail_index("cannot open the index", errno, path);
  return {.state = index_file_state::missing, .reason = "there is none"};
}

/// The head of an index, from one small read. The columns behind it may be damaged.
struct index_summary {
  index_file_state state = index_file_state::missing;
  std::uint32_t samples = 0, members = 0, known_checksums = 0;
  std::uint64_t fingerprint = 0;
  bool shard_is_whole = false;
  bool without_end_marker = false;   ///< true if a whole shard has no end marker
  shard_identity shard{};            ///< size and time for which the index was made
};
/// Reads the head of an index. Throws io_error if the file cannot be read.
inline index_summary summarize_index(const std::string& path, const shard_identity& shard) {
  const detail::unique_fd file = detail::open_index(path, O_RDONLY);
  if (file.get() == -1) {
    if (errno != ENOENT) detail::fail_index("cannot open the index", errno, path);
    return {};
  }
  detail::index_head head;
  const auto state = detail::read_index_head(file, path, shard, head).first;
  if (state != index_file_state::good) return {.state = state};
  return {.state = state, .samples = head.counts.samples, .members = head.counts.members,
          .known_checksums = head.known_checksums, .fingerprint = head.fingerprint,
          .shard_is_whole = head.facts().state == shard_index::shard_state::whole,
          .without_end_marker = head.facts().counters.missing_end_markers > 0, .shard = head.identity()};
}

/// Takes over the checksums from the file, then writes the index if the file lacks any of it. Does nothing for a
/// compressed shard. Throws io_error if the file cannot be read or written.
inline kept_index keep_index(const std::string& path, shard_index& index) {
  kept_index result;
  if (index.state() == shard_index::shard_state::compressed) return result;
  for (;;) {
    const detail::unique_fd file = detail::open_index(path, O_RDWR | O_CREAT);
    if (file.get() == -1) detail::fail_index("cannot write the index", errno, path);
    while (detail::posix_files::lock(file.get()) == -1 && errno == EINTR) {}
    struct ::stat locked {}, now {};
    if (detail::posix_files::stat_open(file.get(), locked) == -1)
      detail::fail_index("cannot get the size of the index", errno, path);
    // The previous holder of the lock replaced the file, or another program removed it: open and lock the new file.
    if (detail::posix_files::stat_path(path.c_str(), now) == -1 || now.st_ino != locked.st_ino ||
        now.st_dev != locked.st_dev)
      continue;
    const loaded_index before = detail::load_open_index(file, path, index.identity());
    bool news = true;
    if (before.state == index_file_state::good && before.index.fingerprint() == index.fingerprint() &&
        before.index.members() == index.members()) {
      news = false;
      for (std::uint32_t m = 0; m < index.members(); ++m) {
        const std::uint32_t old = before.index.checksum(m), own = index.checksum(m);
        news |= old == 0 && own != 0;
        result.learned_checksums += old != 0 && own == 0;
        result.conflicting_checksums += old != 0 && own != 0 && old != own;
        if (old != 0 && own != old) index.set_checksum(m, old);
      }
    }
    if (!news) return result;
    try {
      detail::atomic_file<> replacement(path);
      replacement.append(detail::index_bytes(index));
      replacement.publish();
    } catch (const io_error& trouble) {
      throw io_error(trouble.message(), trouble.hint(), {.stage = "index", .shard = path});
    }
    result.written = true;
    return result;
  }
}

}}}  // namespace millrace::detail
