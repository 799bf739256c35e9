// Definitions for atomic_file.hpp.
#pragma once

#include <millrace/io/file/atomic_file.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Files>
MILLRACE_RARE atomic_file<Files>::atomic_file(std::string path, Files files, const char* stage)
    : path_(std::move(path)), stage_(stage), files_(std::move(files)) {
  const std::size_t slash = path_.rfind('/');
  folder_ = slash == std::string::npos ? "" : path_.substr(0, slash + 1);
  const std::string kernel = kernel_id();
  const std::string writer = (kernel.empty() ? "" : kernel + "-") + std::to_string(::getpid()) + "-";
  const std::string start = folder_ + "." + path_.substr(folder_.size()) + "." + writer;
  buffer_.reserve(buffer_bytes);   // allocated first, so that nothing throws after the file exists
  for (int attempt = 0; file_ == -1; ++attempt) {
    std::string name = start + std::to_string(attempt) + ".partial";
    file_ = files_.open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file_ == -1 && errno != EEXIST && errno != EINTR) fail("cannot create", errno);
    if (file_ != -1 && !is_mine()) files_.close(std::exchange(file_, -1));
    if (file_ != -1) temporary_ = std::move(name);
  }
}

template <class Files>
MILLRACE_RARE atomic_file<Files>::~atomic_file() {
  abandon();
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::append(std::span<const std::byte> data) {
  if (buffer_.size() + data.size() > buffer_bytes) flush();
  if (data.size() >= buffer_bytes) write(data);
  else buffer_.insert(buffer_.end(), data.begin(), data.end());
  size_bytes_ += data.size();
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::append(std::string_view text) {
  append(bytes_of(text));
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::commit() {
  flush();
  while (files_.sync(file_) != 0)
    if (errno != EINTR) fail("cannot flush to disk", errno);
  publish();
  sync_folder();
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::publish() {
  flush();
  // The duplicate of the descriptor keeps the lock until the file has its final name.
  lock_ = files_.duplicate(file_);
  if (files_.close(std::exchange(file_, -1)) != 0) fail("cannot close", errno);
  if (files_.rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename to its final name", errno);
  temporary_.clear();
  abandon();
}

template <class Files>
MILLRACE_RARE bool atomic_file<Files>::is_mine() const {
  struct ::stat status{};
  if (files_.try_lock(file_) != 0) return errno != EWOULDBLOCK;
  return files_.stat_open(file_, status) != 0 || status.st_nlink > 0;
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::flush() {
  write(buffer_);
  buffer_.clear();
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::write(std::span<const std::byte> data) {
  constexpr std::size_t max_bytes_per_call = std::size_t{1} << 30;
  while (!data.empty()) {
    const ssize_t written = files_.write(file_, data.data(), std::min(data.size(), max_bytes_per_call));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write", written < 0 ? errno : ENOSPC);
    data = data.subspan(static_cast<std::size_t>(written));
  }
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::sync_folder() {
  const int folder = files_.open(folder_.empty() ? "." : folder_.c_str(), O_RDONLY);
  if (folder == -1) return;
  const bool failed = files_.sync(folder) != 0 && errno == EIO;
  files_.close(folder);
  if (failed) fail("cannot flush to disk the folder entry of", EIO);
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::abandon() noexcept {
  if (!temporary_.empty()) files_.unlink(temporary_.c_str());
  temporary_.clear();
  if (file_ != -1) files_.close(std::exchange(file_, -1));
  if (lock_ != -1) files_.close(std::exchange(lock_, -1));
}

template <class Files>
MILLRACE_RARE void atomic_file<Files>::fail(std::string_view problem, int reason) {
  abandon();
  const bool is_shard = std::string_view(stage_) == "write_shards";
  throw io_error(
      std::string(problem) + (is_shard ? " the file: " : " the file '" + printable(path_) + "': ") + reason_of(reason),
      reason == ENOSPC || reason == EDQUOT ? "Free some space, or write somewhere else"
                                           : "Check that the folder exists and is writable",
      {.stage = stage_, .shard = is_shard ? path_ : std::string()});
}

#ifdef MILLRACE_COMPILED
template class atomic_file<posix_files>;
#endif

}}}   // namespace millrace::detail
