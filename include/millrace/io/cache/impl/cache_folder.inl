// Definitions for cache_folder.hpp.
#pragma once

#include <millrace/io/cache/cache_folder.hpp>

#include <unistd.h>

#include <millrace/base/clock.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <algorithm>
#include <cerrno>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string cache_folder::path_of(const cached_object& object, std::uint64_t number) const {
  const std::uint64_t version = digest_bytes(bytes_of(object.identity.version),
                                             combine_keys(object.identity.size_bytes, layout_.block_bytes));
  return root() + "/" + text_of({.object = digest_bytes(bytes_of(object.name)), .version = version, .number = number});
}

MILLRACE_INLINE std::uint64_t cache_folder::block_bytes(const cached_object& object,
                                                        std::uint64_t number) const noexcept {
  return std::min(layout_.block_bytes, object.identity.size_bytes - number * layout_.block_bytes);
}

MILLRACE_INLINE cache_block_head cache_folder::head_of(const cached_object& object, std::uint64_t number) const {
  const std::uint64_t bytes = block_bytes(object, number);
  const std::uint64_t chunks = (bytes + layout_.chunk_bytes - 1) / layout_.chunk_bytes;
  return {.object = object,
          .number = number,
          .block_bytes = layout_.block_bytes,
          .chunk_bytes = layout_.chunk_bytes,
          .data_bytes = bytes,
          .checksums = std::vector<std::uint32_t>(chunks)};
}

MILLRACE_INLINE bool cache_folder::has(const cached_object& object, std::uint64_t number) const {
  return ::access(path_of(object, number).c_str(), F_OK) == 0;
}

MILLRACE_INLINE cache_block cache_folder::open(const cached_object& object, std::uint64_t number) {
  cache_block block = open_cache_block(path_of(object, number));
  if (!block) return {};
  if (!block.has_valid_head()) {
    drop_damaged(object, number, block);
    return {};
  }
  if (!block.belongs_to(object, number, layout_)) return {};
  struct ::stat status{};
  // Random reads open the same blocks repeatedly. Therefore the time of a block is updated at most once per second.
  if (posix_files::stat_open(block.file(), status) == 0 &&
      read_clock_ns(CLOCK_REALTIME) - modified_ns(status) > 1'000'000'000)
    ::futimens(block.file(), nullptr);
  return block;
}

MILLRACE_INLINE void cache_folder::drop_damaged(const cached_object& object, std::uint64_t number,
                                                const cache_block& block) {
  cache_counts::add(counts_.damaged_blocks);
  ledger_.remove(path_of(object, number), block.file());
}

MILLRACE_INLINE unique_fd cache_folder::open_part(const std::string& path) {
  const std::string part = path + ".part";
  for (bool created = false;;) {
    unique_fd file(posix_files::open(part.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    if (file) return file;
    if (errno == EINTR) continue;
    const std::string folder = path.substr(0, path.rfind('/'));
    if (errno != ENOENT || created || (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)) {
      ledger_.report_failure("cannot write", errno);
      return {};
    }
    created = true;
  }
}

MILLRACE_INLINE cache_turn cache_folder::acquire_turn(const cached_object& object, std::uint64_t number, bool waits) {
  const std::string path = path_of(object, number), part = path + ".part";
  const std::uint64_t until = steady_now_ns() + wait_ns_;
  struct ::stat status{};
  bool waited = false;
  for (std::int64_t pause_ns = 1'000'000;;) {
    if (ledger_.is_paused()) {
      cache_counts::add(counts_.refusals);
      return cache_turn(cache_turn::kind::bypass);
    }
    unique_fd file = open_part(path);
    if (!file) return cache_turn(cache_turn::kind::bypass);
    if (posix_files::try_lock(file.get()) == 0) {
      // The previous owner of the lock has renamed the part, or another process has removed it as abandoned.
      if (!is_same_cached_file(part, file.get())) continue;
      cache_turn turn(ledger_, std::move(file), path);
      if (posix_files::stat_path(path.c_str(), status) == 0) return cache_turn(cache_turn::kind::appeared);
      const cache_block_head head = head_of(object, number);
      if (!ledger_.reserve(turn.part_.get(), bytes_of_head(head).size() + head.data_bytes))
        return cache_turn(cache_turn::kind::bypass);
      return turn;
    }
    if (errno != EWOULDBLOCK) {
      ledger_.report_failure("cannot lock", errno);
      return cache_turn(cache_turn::kind::bypass);
    }
    if (!waits) return cache_turn(cache_turn::kind::appeared);
    if (!waited) cache_counts::add(counts_.waits);
    waited = true;
    if (steady_now_ns() >= until) {
      cache_counts::add(counts_.waits_given_up);
      return cache_turn(cache_turn::kind::bypass);
    }
    posix_files::sleep_ns(pause_ns);
    pause_ns = std::min<std::int64_t>(2 * pause_ns, 50'000'000);
    if (posix_files::stat_path(path.c_str(), status) == 0) return cache_turn(cache_turn::kind::appeared);
  }
}

/// Writes all bytes at an offset. Returns 0, or the errno of a failure.
MILLRACE_INLINE int write_exactly(int file, std::uint64_t offset_bytes, std::span<const std::byte> data) noexcept {
  while (!data.empty()) {
    const ssize_t written = ::pwrite(file, data.data(), data.size(), static_cast<off_t>(offset_bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    data = data.subspan(static_cast<std::size_t>(written));
    offset_bytes += static_cast<std::uint64_t>(written);
  }
  return 0;
}

MILLRACE_INLINE bool cache_folder::store(cache_turn& turn, const cached_object& object, std::uint64_t number,
                                         std::span<const std::byte> data) {
  cache_block_head head = head_of(object, number);
  head.checksums = cached_chunk_checksums(data, layout_.chunk_bytes);
  const std::string text = bytes_of_head(head);
  int reason = write_exactly(turn.part_.get(), text.size(), data);
  // The head is written last: a file without it counts as damaged.
  if (reason == 0) reason = write_exactly(turn.part_.get(), 0, bytes_of(text));
  if (reason != 0) {
    ledger_.report_failure("cannot write", reason);
    return false;
  }
  if (!ledger_.publish(turn.path_ + ".part", turn.path_)) return false;
  turn.ledger_ = nullptr;
  cache_counts::add(counts_.written_bytes, text.size() + data.size());
  return true;
}

}}}   // namespace millrace::detail
