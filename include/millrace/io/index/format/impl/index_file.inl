// Definitions for index_file.hpp.
#pragma once

#include <millrace/io/index/format/index_file.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::string index_path(const std::string& shard, const index_file_options& options) {
  const std::string_view ending = index_ending;
  if (options.cache_folder.empty()) return shard + std::string(ending);
  const std::unique_ptr<char, decltype(&std::free)> absolute(
      options.storage.is_local() ? ::realpath(shard.c_str(), nullptr) : nullptr, &std::free);
  const std::string full_path = absolute ? absolute.get() : shard;
  const std::string digits = hex(digest_bytes(bytes_of(full_path)), 16);
  const std::string name = full_path.substr(full_path.rfind('/') + 1).substr(0, 150);
  return options.cache_folder + (options.cache_folder.ends_with('/') ? "" : "/") + name + "-" + digits +
         std::string(ending);
}

MILLRACE_RARE void fail_index(std::string_view problem, int reason, const std::string& path) {
  throw io_error(std::string(problem) + ": " + reason_of(reason),
                 "Check the file and its permissions, or name another "
                 "folder for indexes",
                 {.stage = "index", .shard = path});
}

MILLRACE_RARE unique_fd open_index(const std::string& path, int flags) noexcept {
  int file = -1;
  do file = posix_files::open(path.c_str(), flags | O_NONBLOCK, 0666);
  while (file == -1 && errno == EINTR);
  return unique_fd(file);
}

MILLRACE_RARE bool read_index(const unique_fd& file, std::uint64_t offset_bytes, std::span<std::byte> buffer) noexcept {
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

MILLRACE_RARE std::pair<index_file_state, std::string> read_index_head(const unique_fd& file, const std::string& path,
                                                                       const shard_identity& shard,
                                                                       index_front& front) {
  using enum index_file_state;
  const index_head& head = front.head;
  struct ::stat status{};
  if (posix_files::stat_open(file.get(), status) == -1) fail_index("cannot get the size of the index", errno, path);
  if (!S_ISREG(status.st_mode)) return {damaged, "it is not a regular file"};
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (file_bytes == 0) return {missing, "it is being written"};
  if (file_bytes < sizeof head) return {damaged, "it is truncated"};
  const auto front_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, sizeof front));
  if (!read_index(file, 0, std::as_writable_bytes(std::span(&front, 1)).first(front_bytes))) {
    if (errno != 0) fail_index("cannot read the index", errno, path);
    return {damaged, "it is truncated"};
  }
  if (head.mark != index_head::expected_mark) return {damaged, "it does not begin with the mark of an index"};
  if (head.byte_order != index_head::expected_order ||
      (head.version != index_head::expected_version && head.version != index_head::with_entries))
    return {stale, "it was written by another version, or on another kind of machine"};
  if (head.head_checksum != head.expected_head_checksum()) return {damaged, "the checksum of its header is wrong"};
  if (head.shard_bytes != shard.size_bytes) return {stale, "the shard has another size"};
  if (front.has_entries() &&
      (front_bytes < sizeof front || front.entries.checksum != front.entries.expected_checksum(head)))
    return {damaged, "the checksum of its second header is wrong"};
  if (std::string defect = find_defect(front, file_bytes); !defect.empty()) return {damaged, std::move(defect)};
  if (head.identity() != shard) return {touched, "the shard has another modification time"};
  return {good, {}};
}

MILLRACE_RARE loaded_index load_open_index(const unique_fd& file, const std::string& path,
                                           const shard_identity& shard) {
  loaded_index result;
  index_front front;
  const index_head& head = front.head;
  std::tie(result.state, result.reason) = read_index_head(file, path, shard, front);
  if (result.state != index_file_state::good && result.state != index_file_state::touched) return result;
  index_columns columns(head.counts);
  const auto body = std::as_writable_bytes(
      std::span(columns.words.get(), static_cast<std::size_t>(head.counts.all_bytes() / 4)));
  if (!read_index(file, front.columns_at(), body) && errno != 0) fail_index("cannot read the index", errno, path);
  std::string defect = errno == 0 && crc32c(body) == head.body_checksum ? find_defect(head, columns)
                                                                        : "the checksum of its columns is wrong";
  entry_table entries;
  if (defect.empty() && front.has_entries()) {
    entries.built = true;
    entries.begin_at = front.bytes_before_index_entries();
    entries.ends.resize(head.counts.members);
    const auto ends = std::as_writable_bytes(std::span(entries.ends));
    if (!read_index(file, entries.begin_at - ends.size(), ends) && errno != 0)
      fail_index("cannot read the index", errno, path);
    defect = errno == 0 && crc32c(ends) == front.entries.ends_checksum
                 ? find_defect(front, columns, entries.ends)
                 : "the checksum of its table of entry points is wrong";
  }
  if (!defect.empty()) return {.state = index_file_state::damaged, .reason = std::move(defect)};
  result.index = shard_index(head.facts(), std::move(columns));
  result.index.set_entries(std::move(entries));
  return result;
}

MILLRACE_RARE shard_identity identify_shard(const std::string& path, const storage& at) {
  if (!at.is_local()) {
    const auto stamp = find_file_stamp(at, path);
    if (!stamp)
      throw io_error("the storage does not contain this file", "Correct the file name",
                     {.stage = "index", .shard = path});
    return {.size_bytes = stamp->size_bytes, .modified_ns = stamp->changed};
  }
  struct ::stat status{};
  if (posix_files::stat_path(path.c_str(), status) == -1)
    throw io_error("cannot get the size of the file: " + reason_of(errno),
                   "Check the file, its permissions and its storage", {.stage = "index", .shard = path});
  return {.size_bytes = static_cast<std::uint64_t>(status.st_size), .modified_ns = modified_ns(status)};
}

MILLRACE_RARE loaded_index load_index(const std::string& path, const shard_identity& shard) {
  const unique_fd file = open_index(path, O_RDONLY);
  if (file.get() != -1) return load_open_index(file, path, shard);
  if (errno != ENOENT) fail_index("cannot open the index", errno, path);
  return {.state = index_file_state::missing, .reason = "it does not exist"};
}

MILLRACE_RARE loaded_index load_index_without_shard(const std::string& path) {
  const unique_fd file = open_index(path, O_RDONLY);
  index_head head;
  if (file.get() == -1 || !read_index(file, 0, std::as_writable_bytes(std::span(&head, 1))))
    return {.state = index_file_state::missing, .reason = "it does not exist"};
  return load_open_index(file, path, head.identity());
}

MILLRACE_RARE index_summary summarize_open_index(const unique_fd& file, const std::string& path,
                                                 const shard_identity& shard) {
  index_front front;
  const index_head& head = front.head;
  const auto state = read_index_head(file, path, shard, front).first;
  if (state != index_file_state::good) return {.state = state};
  return {
      .state = state,
      .samples = head.counts.samples,
      .members = head.counts.members,
      .known_checksums = head.known_checksums,
      .fingerprint = head.fingerprint,
      .shard_is_complete = head.facts().state == shard_index::shard_state::complete,
      .without_end_marker = head.facts().counters.missing_end_markers > 0,
      .entries_built = front.has_entries(),
      .entry_bytes = front.has_entries() ? front.entries.bytes : 0,
      .shard = head.identity(),
      .index_bytes = front.has_entries() ? front.bytes_before_index_entries() : sizeof head + head.counts.all_bytes()};
}

MILLRACE_RARE index_summary summarize_index(const std::string& path, const shard_identity& shard) {
  const unique_fd file = open_index(path, O_RDONLY);
  if (file.get() == -1) {
    if (errno != ENOENT) fail_index("cannot open the index", errno, path);
    return {};
  }
  return summarize_open_index(file, path, shard);
}

MILLRACE_RARE index_summary summarize_index(const shard_index& index) {
  const index_counts& counts = index.columns().counts;
  return {.state = index_file_state::good,
          .samples = index.samples(),
          .members = index.members(),
          .known_checksums = static_cast<std::uint32_t>(index.known_checksums()),
          .fingerprint = index.fingerprint(),
          .shard_is_complete = index.state() == shard_index::shard_state::complete,
          .without_end_marker = index.facts().counters.missing_end_markers > 0,
          .entries_built = index.entries().built,
          .entries_in_storage = index.entries().in_storage,
          .entry_bytes = index.entries().bytes(),
          .shard = index.identity(),
          .index_bytes = index.entries().built ? entries_begin_at(counts) : sizeof(index_head) + counts.all_bytes()};
}

/// Returns the size of an index file without its entries. `first` is the first bytes of the file, `bytes` its size.
MILLRACE_INLINE std::uint64_t bytes_before_index_entries(std::span<const std::byte> first,
                                                         std::uint64_t bytes) noexcept {
  index_front front;
  if (first.size() < sizeof front) return bytes;
  std::memcpy(&front, first.data(), sizeof front);
  const bool valid = front.has_entries() && front.head.head_checksum == front.head.expected_head_checksum() &&
                     front.entries.checksum == front.entries.expected_checksum(front.head);
  return valid ? std::min(bytes, front.bytes_before_index_entries()) : bytes;
}

/// Returns a file in memory that contains an index file up to its entries, and has the size of the complete index file.
/// Returns no file if the index does not exist. The first request fetches `front_bytes`.
MILLRACE_RARE unique_fd copy_of_stored_index(const storage& at, const std::string& name, std::size_t front_bytes,
                                             bool heads_only) {
  const auto file = at->open_front(name, front_bytes);
  if (!file) return unique_fd(-1);
  constexpr std::uint64_t largest = std::uint64_t{4} << 30;
  const std::uint64_t bytes = file->identity().size_bytes;
  std::vector<std::byte> front(static_cast<std::size_t>(std::min<std::uint64_t>(front_bytes, bytes)));
  front.resize(read_fully(*file, 0, front));
  if (!heads_only) {
    const std::size_t got = front.size();
    const std::uint64_t size = std::min(bytes_before_index_entries(front, bytes), largest);
    front.resize(std::max(got, static_cast<std::size_t>(size)));
    front.resize(got + read_fully(*file, got, std::span(front).subspan(got)));
  }
  unique_fd copy(::memfd_create("millrace-index", MFD_CLOEXEC));
  if (copy.get() == -1 ||
      ::ftruncate(copy.get(), static_cast<off_t>(std::min(bytes, largest + entry_table::largest_bytes))) == -1)
    fail_index("cannot copy the index into memory", errno, name);
  for (std::size_t at_byte = 0; at_byte < front.size();) {
    const ssize_t put = ::pwrite(copy.get(), front.data() + at_byte, front.size() - at_byte,
                                 static_cast<off_t>(at_byte));
    if (put == -1 && errno != EINTR) fail_index("cannot copy the index into memory", errno, name);
    at_byte += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
  }
  return copy;
}

/// Returns the size and time of the shard as recorded in its index.
MILLRACE_RARE shard_identity recorded_identity(const unique_fd& copy) {
  index_head head;
  return read_index(copy, 0, std::as_writable_bytes(std::span(&head, 1))) ? head.identity() : shard_identity();
}

MILLRACE_RARE loaded_index load_stored_index(const storage& at, const std::string& shard, std::uint64_t file_bytes) {
  constexpr std::uint64_t usual_bytes = 64 << 10, largest_bytes = 64 << 20;   // maximum memory of one request
  const std::string name = shard + std::string(index_ending);
  const std::uint64_t front = std::min(file_bytes == 0 ? usual_bytes : file_bytes, largest_bytes);
  const unique_fd copy = copy_of_stored_index(at, name, static_cast<std::size_t>(front), false);
  if (copy.get() == -1) return {.state = index_file_state::missing, .reason = "it does not exist"};
  loaded_index result = load_open_index(copy, name, recorded_identity(copy));
  if (result.state != index_file_state::good) return result;
  entry_table entries = result.index.entries();
  entries.in_storage = true;
  result.index.set_entries(std::move(entries));
  return result;
}

MILLRACE_RARE index_summary summarize_stored_index(const storage& at, const std::string& shard) {
  const std::string name = shard + std::string(index_ending);
  const unique_fd copy = copy_of_stored_index(at, name, sizeof(index_front), true);
  if (copy.get() == -1) return {};
  index_summary result = summarize_open_index(copy, name, recorded_identity(copy));
  result.entries_in_storage = true;
  result.identified = false;
  return result;
}

/// Appends a range of a file.
MILLRACE_RARE void append_index_part(const unique_fd& file, byte_range range, const std::string& path,
                                     atomic_file<>& to) {
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(range.size_bytes, 1 << 20)));
  while (range.size_bytes > 0) {
    const std::span<std::byte> now = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), range.size_bytes)));
    if (!read_index(file, range.offset_bytes, now)) fail_index("cannot read the index", errno == 0 ? EIO : errno, path);
    to.append(now);
    range = {range.offset_bytes + now.size(), range.size_bytes - now.size()};
  }
}

/// Opens and locks the index file. Creates the file if it does not exist. The lock lasts until the file is closed.
MILLRACE_RARE unique_fd lock_index_file(const std::string& path) {
  for (;;) {
    // A new file is never created through a link, because the author of the data set could have set its target.
    unique_fd file = open_index(path, O_RDWR);
    if (file.get() == -1 && errno == ENOENT) file = open_index(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (file.get() == -1) fail_index("cannot write the index", errno, path);
    while (posix_files::lock(file.get()) == -1 && errno == EINTR) {}
    struct ::stat locked{}, now{};
    if (posix_files::stat_open(file.get(), locked) == -1) fail_index("cannot get the size of the index", errno, path);
    // If this is a different file, the previous owner of the lock replaced it, or another program removed it.
    if (posix_files::stat_path(path.c_str(), now) == 0 && now.st_ino == locked.st_ino && now.st_dev == locked.st_dev)
      return file;
  }
}

/// Copies the checksums of an older index of the same members, and counts them. Returns whether the older index lacks
/// any checksum of the new index.
MILLRACE_INLINE bool merge_checksums(const shard_index& before, shard_index& index, stored_index& counts) {
  bool has_new = false;
  for (std::uint32_t m = 0; m < index.members(); ++m) {
    const std::uint32_t old = before.checksum(m), own = index.checksum(m);
    has_new |= old == 0 && own != 0;
    counts.learned_checksums += old != 0 && own == 0;
    counts.conflicting_checksums += old != 0 && own != 0 && old != own;
    if (old != 0 && own != old) index.set_checksum(m, old);
  }
  return has_new;
}

/// Replaces the file `before` with a file for `index`. If `entries` is null, copies the entries of `before`.
MILLRACE_RARE void replace_index(const unique_fd& before, const std::string& path, const shard_index& index,
                                 const entry_pieces* entries) {
  try {
    atomic_file<> replacement(path);
    replacement.append(index_bytes(index));
    if (entries)
      for (const auto& piece : *entries) replacement.append(piece);
    else append_index_part(before, {index.entries().begin_at, index.entries().bytes()}, path, replacement);
    replacement.publish();
  } catch (const io_error& e) {
    throw io_error(e.message(), e.hint(), {.stage = "index", .shard = path});
  }
}

MILLRACE_RARE stored_index store_index(const std::string& path, shard_index& index, const entry_pieces* entries) {
  stored_index result;
  if (index.state() == shard_index::shard_state::compressed) return result;
  const unique_fd file = lock_index_file(path);
  const loaded_index before = load_open_index(file, path, index.identity());
  const bool is_same = before.index.fingerprint() == index.fingerprint() && before.index.members() == index.members();
  bool has_new = true;
  if (before.state == index_file_state::good && is_same)
    has_new = merge_checksums(before.index, index, result) || entries != nullptr;
  if (!entries) index.set_entries(is_same ? before.index.entries() : entry_table());
  if (!has_new) return result;
  replace_index(file, path, index, entries);
  result.written = true;
  return result;
}

MILLRACE_RARE void remove_abandoned_indexes(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);   // without a slash, npos + 1 is 0
  remove_abandoned_files(folder, posix_files(), [](std::string_view name) { return name.ends_with(index_ending); });
}

}}}   // namespace millrace::detail
