// Definitions for cache_ledger.hpp.
#pragma once

#include <millrace/io/cache/cache_ledger.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <sys/statvfs.h>

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <unordered_map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string text_of(const cache_file_name& name) {
  const std::string object = hex(name.object, 16);
  return object.substr(0, 2) + "/" + object + "-" + hex(name.version, 16) + "-" + hex(name.number, 8) +
         (name.is_part ? ".part" : "");
}

MILLRACE_INLINE std::optional<cache_file_name> parse_cache_file(std::string_view file) noexcept {
  cache_file_name name;
  if (file.ends_with(".part")) {
    name.is_part = true;
    file.remove_suffix(5);
  }
  if (file.size() != 42 || file[16] != '-' || file[33] != '-') return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits, std::uint64_t& into) {
    const char* const end = file.data() + at + digits;
    return std::from_chars(file.data() + at, end, into, 16).ptr == end;
  };
  if (!number(0, 16, name.object) || !number(17, 16, name.version) || !number(34, 8, name.number)) return std::nullopt;
  return name;
}

/// Returns the bytes of a file on the disk, which uses complete pages.
MILLRACE_INLINE std::uint64_t disk_bytes(std::uint64_t size) noexcept { return (size + 4095) / 4096 * 4096; }

MILLRACE_INLINE std::vector<cache_entry> list_cache(const std::string& root) {
  std::vector<cache_entry> entries;
  const auto close = [](DIR* opened) { ::closedir(opened); };
  for (std::uint64_t bucket = 0; bucket < 256; ++bucket) {
    const std::string folder = root + "/" + hex(bucket, 2) + "/";
    const std::unique_ptr<DIR, decltype(close)> opened(::opendir(folder.c_str()), close);
    while (const dirent* const item = opened ? ::readdir(opened.get()) : nullptr) {
      const auto name = parse_cache_file(item->d_name);
      struct ::stat status{};
      if (!name || name->object >> 56 != bucket ||
          ::fstatat(::dirfd(opened.get()), item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
        continue;
      entries.push_back({.path = folder + item->d_name,
                         .name = *name,
                         .bytes = disk_bytes(static_cast<std::uint64_t>(status.st_size)),
                         .used_ns = modified_ns(status)});
    }
  }
  return entries;
}

MILLRACE_INLINE std::string cache_root(const std::string& folder) {
  return folder + "/millrace-cache-" + std::to_string(::geteuid()) + "-1";
}

MILLRACE_INLINE bool is_same_cached_file(const std::string& path, int file) noexcept {
  struct ::stat named{}, opened{};
  return posix_files::stat_path(path.c_str(), named) == 0 && posix_files::stat_open(file, opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/// Removes a file that is not open anywhere. Returns whether it was removed.
MILLRACE_INLINE bool remove_unused(const std::string& path) noexcept {
  const unique_fd file(posix_files::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return file && posix_files::try_lock(file.get()) == 0 && is_same_cached_file(path, file.get()) &&
         posix_files::unlink(path.c_str()) == 0;
}

MILLRACE_INLINE cache_ledger::scoped_lock::scoped_lock(cache_ledger& ledger, std::uint64_t patience_ns)
    : mine_(ledger.mutex_), file_(ledger.file_.get()) {
  const std::uint64_t until = steady_now_ns() + patience_ns;
  for (std::int64_t wait_ns = 100'000; ledger.usable_; wait_ns = std::min<std::int64_t>(2 * wait_ns, 20'000'000)) {
    if (posix_files::try_lock(file_) == 0) {
      locked_ = true;
      return;
    }
    // Threads that waited for this thread do not wait for the lock again.
    if (steady_now_ns() >= until || ledger.is_paused()) {
      ledger.report_failure("cannot lock", ETIMEDOUT);
      return;
    }
    posix_files::sleep_ns(wait_ns);
  }
}

MILLRACE_INLINE cache_ledger::scoped_lock::~scoped_lock() {
  if (locked_) ::flock(file_, LOCK_UN);
}

MILLRACE_INLINE cache_ledger::cache_ledger(const cache_options& o, cache_counts& counts)
    : root_(cache_root(o.folder)),
      limit_bytes_(o.bytes.value_or(~std::uint64_t{0})),
      keep_free_share_(o.keep_free_share),
      counts_(counts) {
  try {
    create_folders(o.folder);
    usable_ = create_root();
  } catch (const io_error& e) {
    counts_.report_trouble("the run continues without a cache: " + e.message());
  }
  if (!usable_) return;
  // This lock has a longer limit, because each process scans the files at its start, and scans are slow.
  const scoped_lock lock(*this, 5 * lock_patience_ns);
  if (lock) write_used(evict(0, 0));
}

MILLRACE_INLINE bool cache_ledger::create_root() {
  struct ::stat status{};
  const auto fails = [&](const char* problem) {
    report_failure(problem, errno);
    return false;
  };
  if (::mkdir(root_.c_str(), 0700) != 0 && errno != EEXIST) return fails("cannot create");
  if (::lstat(root_.c_str(), &status) != 0) return fails("cannot read");
  // Another user who owned the folder could supply any bytes, with correct checksums.
  errno = ENOTDIR;
  if (!S_ISDIR(status.st_mode)) return fails("cannot use");
  errno = EPERM;
  if (status.st_uid != ::geteuid()) return fails("cannot use");
  file_ = unique_fd(::open((root_ + "/ledger").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_) return fails("cannot write");
  if (posix_files::try_lock(file_.get()) != 0 && errno != EWOULDBLOCK) return fails("cannot lock");
  ::flock(file_.get(), LOCK_UN);
  return true;
}

MILLRACE_INLINE void cache_ledger::pause() noexcept {
  paused_until_ns_.store(steady_now_ns() + pause_ns, std::memory_order_relaxed);
}

MILLRACE_INLINE bool cache_ledger::is_paused() const noexcept {
  return !usable_ || steady_now_ns() < paused_until_ns_.load(std::memory_order_relaxed);
}

MILLRACE_INLINE void cache_ledger::report_failure(const std::string& problem, int reason) {
  pause();
  counts_.report_trouble("the run continues without the cache '" + printable(root_) + "': " + problem + ": " +
                         reason_of(reason));
}

MILLRACE_INLINE std::optional<std::uint64_t> cache_ledger::read_used() const noexcept {
  std::uint64_t numbers[2];
  if (posix_files::read_at(file_.get(), numbers, sizeof numbers, 0) != sizeof numbers ||
      numbers[1] != mix_bits(numbers[0] + 1))
    return std::nullopt;
  return numbers[0];
}

MILLRACE_INLINE void cache_ledger::write_used(std::uint64_t used) noexcept {
  const std::uint64_t numbers[2] = {used, mix_bits(used + 1)};
  if (::pwrite(file_.get(), numbers, sizeof numbers, 0) == sizeof numbers) return;
  // Without a stored number, each new block causes a scan of all files.
  if (::ftruncate(file_.get(), 0) != 0) usable_ = false;
}

MILLRACE_INLINE std::uint64_t cache_ledger::used_bytes() {
  const auto used = read_used();
  return used ? *used : evict(0, 0);
}

MILLRACE_INLINE std::uint64_t cache_ledger::excess(std::uint64_t used, std::uint64_t needed) const noexcept {
  const std::uint64_t over = used + needed > limit_bytes_ ? used + needed - limit_bytes_ : 0;
  struct ::statvfs disk{};
  if (::fstatvfs(file_.get(), &disk) != 0) return over;
  const auto free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  const auto keep = static_cast<std::uint64_t>(keep_free_share_ * static_cast<double>(disk.f_blocks) *
                                               static_cast<double>(disk.f_frsize));
  return std::max(over, keep + needed > free ? keep + needed - free : 0);
}

MILLRACE_INLINE std::uint64_t cache_ledger::evict(std::uint64_t needed, std::uint64_t at_least) {
  struct version {
    std::uint64_t number = 0;
    std::int64_t used_ns = 0;
  };
  std::vector<cache_entry> blocks;
  std::unordered_map<std::uint64_t, version> latest;
  std::uint64_t used = 0;
  for (cache_entry& entry : list_cache(root_)) {
    if (entry.name.is_part) {
      if (!remove_unused(entry.path)) used += entry.bytes;
      continue;
    }
    used += entry.bytes;
    version& newest = latest[entry.name.object];
    if (entry.used_ns >= newest.used_ns) newest = version{.number = entry.name.version, .used_ns = entry.used_ns};
    blocks.push_back(std::move(entry));
  }
  const std::uint64_t goal = std::max(excess(used, needed), at_least);
  if (goal == 0) return used;
  // Evicts more than necessary, because otherwise each new block would begin with a scan of all files.
  const std::uint64_t more = used / 20;
  const auto is_old = [&](const cache_entry& e) { return e.name.version != latest[e.name.object].number; };
  std::sort(blocks.begin(), blocks.end(), [&](const cache_entry& a, const cache_entry& b) {
    const bool old_a = is_old(a), old_b = is_old(b);
    return old_a != old_b ? old_a : a.used_ns < b.used_ns;
  });
  for (std::uint64_t freed = 0; const cache_entry& entry : blocks) {
    if (freed >= goal && freed + entry.bytes > goal + more) break;
    if (!remove_unused(entry.path)) continue;
    freed += entry.bytes;
    used -= entry.bytes;
    cache_counts::add(counts_.evictions);
    cache_counts::add(counts_.evicted_bytes, entry.bytes);
  }
  return used;
}

/// Sets the size of a file and allocates its disk space. Returns 0, or the errno of a failure.
MILLRACE_INLINE int allocate(int file, std::uint64_t bytes) noexcept {
#if defined(__linux__)
  int result;
  do result = ::fallocate(file, 0, 0, static_cast<off_t>(bytes));
  while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
#endif
  return ::ftruncate(file, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

MILLRACE_INLINE bool cache_ledger::reserve(int file, std::uint64_t bytes) {
  if (is_paused()) {
    cache_counts::add(counts_.refusals);
    return false;
  }
  const scoped_lock lock(*this, lock_patience_ns);
  struct ::stat status{};
  if (!lock || posix_files::stat_open(file, status) != 0) return false;
  // If a process was killed while it wrote this part, it had already added its bytes to the sum.
  const std::uint64_t abandoned = disk_bytes(static_cast<std::uint64_t>(status.st_size)), needed = disk_bytes(bytes);
  std::uint64_t used = used_bytes();
  int reason = abandoned > 0 && ::ftruncate(file, 0) != 0 ? errno : 0;
  if (reason == 0) used -= std::min(used, abandoned);
  for (int attempt = 0; reason == 0 && needed <= limit_bytes_; ++attempt) {
    if (excess(used, needed) == 0) {
      write_used(used + needed);
      reason = allocate(file, bytes);
      if (reason == 0) return true;
      static_cast<void>(::ftruncate(file, 0));
      if (reason != ENOSPC && reason != EDQUOT) break;
    }
    if (attempt == 1) break;
    used = evict(needed, reason == 0 ? 0 : needed);
    reason = 0;
  }
  write_used(used);
  if (reason == 0) report_failure("cannot store " + std::to_string(bytes) + " more bytes within its limits", ENOSPC);
  else report_failure("cannot write", reason);
  return false;
}

MILLRACE_INLINE bool cache_ledger::publish(const std::string& part, const std::string& path) {
  const scoped_lock lock(*this, lock_patience_ns);
  if (!lock) return false;
  struct ::stat replaced{};
  const bool replaces = posix_files::stat_path(path.c_str(), replaced) == 0;
  if (posix_files::rename(part.c_str(), path.c_str()) != 0) {
    report_failure("cannot rename a file", errno);
    return false;
  }
  if (const auto used = replaces ? read_used() : std::nullopt)
    write_used(*used - std::min(*used, disk_bytes(static_cast<std::uint64_t>(replaced.st_size))));
  return true;
}

MILLRACE_INLINE void cache_ledger::remove(const std::string& path, int file) {
  const scoped_lock lock(*this, lock_patience_ns);
  struct ::stat status{};
  if (posix_files::stat_open(file, status) != 0 || !is_same_cached_file(path, file) ||
      posix_files::unlink(path.c_str()) != 0)
    return;
  if (const auto used = lock ? read_used() : std::nullopt)
    write_used(*used - std::min(*used, disk_bytes(static_cast<std::uint64_t>(status.st_size))));
}

}}}   // namespace millrace::detail
