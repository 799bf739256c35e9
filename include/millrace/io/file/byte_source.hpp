// byte_source: the interface through which shards are read. file_source implements it for files; you can write your own
// source.
//
//   auto source = std::make_unique<mr::file_source>("train-000.tar");  // throws io_error if it cannot be opened
//   std::size_t got = source->read_at(offset_bytes, buffer);           // 0 only at the end
//
//   class my_source : public mr::byte_source {                         // your own source: two functions
//     std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;
//     std::string_view name() const noexcept override;                 // for messages
//   };
//
// Errors of file_source: io_error with the shard, the offset and the system's reason.
// - EINTR: an interrupted call is repeated.
// - EAGAIN: the call is retried with growing pauses, about 0.25 s in total.
// - ESTALE: the server of a network file system lost the file handle. The source reopens the file, at most once per
//   call. If the size or the modification time has changed, the source throws io_error.
// - EIO: not retried, because data that a failing disk returns on the second attempt cannot be trusted.
// - If a file has become shorter since it was opened, the source throws io_error.
//
// Threads: one thread at a time per source.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// A range of a source: `size_bytes` bytes starting at `offset_bytes`. If the source ends within the range, the range
/// ends there too.
struct byte_range {
  std::uint64_t offset_bytes = 0, size_bytes = ~std::uint64_t{0};
};

/// The interface of a source: bytes that can be read from any offset.
class byte_source {
 public:
  byte_source() = default;
  byte_source(const byte_source&) = delete;
  byte_source& operator=(const byte_source&) = delete;
  virtual ~byte_source() = default;

  /// Reads the bytes starting at `offset_bytes` into the front of `buffer`. Returns the number of bytes read, which may
  /// be smaller than the size of `buffer`. Returns 0 only at the end of the source.
  virtual std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) = 0;

  /// Works like read_at(), but fills several buffers in order. A source may fill only the first of `parts`.
  virtual std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) {
    return parts.empty() ? 0 : read_at(offset_bytes, parts.front());
  }
  /// Returns whether read_parts() fills many parts at the cost of one read.
  virtual bool reads_parts() const noexcept { return false; }

  /// Announces the next reads, in order. A remote source may prefetch their bytes; other sources do nothing.
  virtual void will_read(std::span<const byte_range> ranges) { static_cast<void>(ranges); }

  /// Returns the name for messages. The view is valid as long as the source exists.
  virtual std::string_view name() const noexcept = 0;
};

namespace detail {

/// Fills `buffer` with the bytes starting at `offset_bytes`. Returns the number of bytes read, which is smaller than
/// the buffer only at the end of the source.
std::size_t read_fully(byte_source& source, std::uint64_t offset_bytes, std::span<std::byte> buffer);
/// Fills the buffers in `parts` in order. No buffer may be empty. Returns the number of bytes read. The call may change
/// the elements of `parts`.
std::size_t read_fully(byte_source& source, std::uint64_t offset_bytes, std::span<std::span<std::byte>> parts);

/// A file as a byte_source. Only tests replace `Files`.
template <class Files = posix_files>
class basic_file_source final : public byte_source {
 public:
  /// Opens the file. Throws io_error if it cannot be opened or its size cannot be read.
  explicit basic_file_source(std::string path, Files files = {}) : path_(std::move(path)), files_(std::move(files)) {
    open();
    remember_status(opened_);
  }
  ~basic_file_source() override {
    if (file_ != -1) files_.close(file_);
  }

  /// Returns the path.
  std::string_view name() const noexcept override { return path_; }
  /// Returns the size that the file had when it was opened.
  std::uint64_t size_bytes() const noexcept { return static_cast<std::uint64_t>(opened_.st_size); }

  /// Reads up to 1 GiB into `buffer`. Throws io_error if the read fails permanently or the file was replaced.
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    const std::size_t size = std::min(buffer.size(), max_bytes_per_call);
    return read(offset_bytes, size,
                [&] { return files_.read_at(file_, buffer.data(), size, static_cast<off_t>(offset_bytes)); });
  }
  /// Works like read_at(), but fills up to 512 parts in order.
  std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) override {
    std::array<struct ::iovec, max_parts_per_call> places;
    std::size_t count = 0, requested = 0;
    for (; count < std::min(parts.size(), places.size()) && requested < max_bytes_per_call; ++count) {
      places[count] = {parts[count].data(), std::min(parts[count].size(), max_bytes_per_call - requested)};
      requested += places[count].iov_len;
    }
    return read(offset_bytes, requested, [&] {
      return files_.read_parts_at(file_, places.data(), static_cast<int>(count), static_cast<off_t>(offset_bytes));
    });
  }
  /// Returns true, because the system can fill several parts with one read.
  bool reads_parts() const noexcept override { return true; }

 private:
  // On Linux and macOS, one system call transfers less than 2 GiB, and accepts at most 1,024 parts.
  static constexpr std::size_t max_bytes_per_call = std::size_t{1} << 30;
  static constexpr std::size_t max_parts_per_call = 512;
  static constexpr std::int64_t longest_pause_ns = 128'000'000;

  /// Repeats the call until it succeeds or fails permanently. `requested` is the number of bytes that the call
  /// requests.
  template <class Call>
  std::size_t read(std::uint64_t offset_bytes, std::size_t requested, const Call& call) {
    std::int64_t pause_ns = 1'000'000;
    bool reopened = false;
    for (;;) {
      const ssize_t got = call();
      if (got == 0 && requested > 0) check_file_end(offset_bytes);
      if (got >= 0) return static_cast<std::size_t>(got);
      const int reason = errno;
      if (reason == EINTR) continue;
      if (reason == EAGAIN && pause_ns <= longest_pause_ns) {
        files_.sleep_ns(pause_ns);
        pause_ns *= 2;
      } else if (reason == ESTALE && !reopened) {
        reopened = true;
        reopen(offset_bytes);
      } else {
        fail("cannot read", reason, offset_bytes);
      }
    }
  }

  void open() {
    do file_ = files_.open(path_.c_str(), O_RDONLY);
    while (file_ == -1 && errno == EINTR);
    if (file_ == -1) fail("cannot open", errno, error_location::unknown);
    files_.will_read_forward(file_);
  }
  void remember_status(struct ::stat& status) {
    if (files_.stat_open(file_, status) == -1) {
      const int reason = errno;
      files_.close(std::exchange(file_, -1));
      fail("cannot get the size of", reason, error_location::unknown);
    }
  }
  MILLRACE_RARE void reopen(std::uint64_t offset_bytes) {
    files_.close(std::exchange(file_, -1));
    open();
    struct ::stat now{};
    remember_status(now);
    if (now.st_size != opened_.st_size || now.st_mtime != opened_.st_mtime)
      throw io_error("the file was replaced while it was being read: got " + std::to_string(now.st_size) +
                         " bytes, expected " + std::to_string(opened_.st_size),
                     "Write new data under a new name, and start again", where(offset_bytes));
  }

  /// Throws io_error if the file has become shorter since it was opened.
  MILLRACE_RARE void check_file_end(std::uint64_t offset_bytes) const {
    if (S_ISREG(opened_.st_mode) && offset_bytes < size_bytes())
      throw io_error("the file ends too early: expected the " + std::to_string(size_bytes()) +
                         " bytes that it had when it was opened",
                     "Check that no other program writes to it. Write new data under a new name, and start again",
                     where(offset_bytes));
  }

  error_location where(std::uint64_t offset_bytes) const {
    return {.stage = {}, .shard = path_, .key = {}, .offset_bytes = offset_bytes};
  }
  [[noreturn]] MILLRACE_RARE void fail(std::string_view problem, int reason, std::uint64_t offset_bytes) const {
    throw io_error(std::string(problem) + " the file: " + reason_of(reason),
                   reason == EMFILE || reason == ENFILE
                       ? "Raise the limit of open files (ulimit -n), or read fewer shards at once"
                       : "Check the file, its permissions and its storage",
                   where(offset_bytes));
  }

  std::string path_;
  Files files_;
  int file_ = -1;
  struct ::stat opened_{};
};

}   // namespace detail

/// A file on the real file system.
using file_source = detail::basic_file_source<>;

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/byte_source.inl>
#endif
