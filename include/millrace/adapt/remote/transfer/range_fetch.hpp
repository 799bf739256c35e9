// The transfer of a range of a remote object. A reader can read each byte as soon as it has arrived.
//
//   auto part = std::make_shared<mr::detail::range_fetch>(object, 0, memory);   // a reader creates it
//   engine.submit(part);                                                        // the network thread fills it
//   part->wait_into(0, buffer);                                                 // the reader waits for its bytes
//
// Errors: functions named wait_... throw the error that ended the fetch. Threads: one reader, and the network thread.
// Lifetime: the memory must exist until a wait function has thrown, the reader has received all bytes, or abandon() has
// returned.
#pragma once

#include <millrace/io/file/storage.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An object, and the state that all its requests share.
struct transfer_object {
  std::string name{};
  /// Size and version of the object. If is_assumed is false, the first response sets this member before other fetches
  /// of the object begin.
  std::optional<file_identity> identity{};
  std::string redirected_to{};   ///< target of the last redirect; used only by the network thread
  bool is_assumed = false;       ///< whether the identity is from a set index instead of a response
};

/// A range, the memory for it, and the number of bytes that have arrived.
class range_fetch {
 public:
  range_fetch(std::shared_ptr<transfer_object> of, std::uint64_t offset_bytes, std::span<std::byte> memory)
      : object_(std::move(of)), offset_bytes_(offset_bytes), memory_(memory), size_bytes_(memory.size()) {}
  range_fetch(const range_fetch&) = delete;
  range_fetch& operator=(const range_fetch&) = delete;

  const std::shared_ptr<transfer_object>& object() const noexcept { return object_; }
  std::uint64_t offset_bytes() const noexcept { return offset_bytes_; }

  /// Waits until `bytes` bytes have arrived. If the range is shorter, waits for the complete range. Returns the number
  /// of bytes that have arrived.
  std::size_t wait_for(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    awaited_end_ = bytes;
    changed_.wait(lock, [&] { return arrived_ >= std::min(bytes, size_bytes()) || failure_; });
    awaited_end_ = 0;
    if (arrived_ < std::min(bytes, size_bytes())) std::rethrow_exception(failure_);
    return arrived_;
  }
  /// Waits until the to.size() bytes that begin at position `from` of the range have arrived, and copies them to `to`.
  /// If many of these bytes are still missing, the network thread writes them directly to `to` instead of the fetch's
  /// memory. Afterwards, use the fetch's memory only from position buffered_from() on.
  void wait_into(std::size_t from, std::span<std::byte> to) {
    const std::size_t end = from + to.size();
    std::unique_lock lock(mutex_);
    const std::size_t there = std::clamp(arrived_.load(), from, end);
    const std::size_t coming = std::clamp(arrived_ + on_copy_, from, end);
    if (end - coming >= least_direct_bytes && arrived_ >= from && !failure_) {
      direct_ = to.subspan(coming - from);
      buffered_from_ = end;
    }
    const std::size_t buffered_end = direct_.empty() ? end : coming;
    awaited_end_ = end;
    lock.unlock();
    std::memcpy(to.data(), memory_.data() + from, there - from);   // later bytes may arrive during this copy
    lock.lock();
    changed_.wait(lock, [&] { return arrived_ >= end || (failure_ && on_copy_ == 0); });
    awaited_end_ = 0;
    direct_ = {};
    if (arrived_ < end) std::rethrow_exception(failure_);
    lock.unlock();
    std::memcpy(to.data() + (there - from), memory_.data() + there, buffered_end - there);
  }
  /// Returns the first valid position in the memory. Earlier bytes were written directly to a reader's buffer.
  std::size_t buffered_from() const noexcept { return buffered_from_; }
  /// Waits until the size and version of the object are known. Returns whether the object exists.
  bool wait_for_identity() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ || missing_ || failure_; });
    if (!begun_ && failure_) std::rethrow_exception(failure_);
    return begun_;
  }
  /// Returns the number of bytes that have arrived.
  std::size_t arrived() const noexcept { return arrived_; }
  /// Returns the size of the range. If the range extends beyond the end of the object, begin() shortens it.
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  std::uint64_t end_byte() const noexcept { return offset_bytes_ + size_bytes(); }
  /// Ends a fetch that the reader no longer needs. After the return, nothing is written to the memory.
  void abandon() {
    std::unique_lock lock(mutex_);
    abandoned_ = true;
    changed_.wait(lock, [&] { return on_copy_ == 0; });
    memory_ = {};
  }

  // Only the network thread calls the following functions.

  /// Returns whether the fetch has ended: it is complete, failed, missing or abandoned.
  bool is_over() const {
    const std::lock_guard lock(mutex_);
    return abandoned_ || missing_ || failure_ || arrived_ == size_bytes_;
  }
  /// Reports that the object exists. `identity` is its size and version, or nothing if they are already known.
  void begin(const std::optional<file_identity>& identity) {
    const std::lock_guard lock(mutex_);
    if (identity) {
      object_->identity = identity;
      const std::uint64_t there = identity->size_bytes - std::min(identity->size_bytes, offset_bytes_);
      if (there < size_bytes_) size_bytes_ = static_cast<std::size_t>(there);
    }
    begun_ = true;
    changed_.notify_all();
  }
  /// Accepts bytes of the object from offset `first_byte` on. Skips bytes that have already arrived. Returns true if
  /// all bytes have arrived, if the fetch has failed, or if it was abandoned.
  bool take(std::uint64_t first_byte, std::span<const std::byte> bytes) {
    std::unique_lock lock(mutex_);
    if (abandoned_ || failure_) return true;
    const std::uint64_t from = offset_bytes_ + arrived_, end = first_byte + bytes.size();
    if (end > from && first_byte <= from && arrived_ < size_bytes_) {
      const auto skipped = static_cast<std::size_t>(from - first_byte);
      on_copy_ = std::min(bytes.size() - skipped, size_bytes_ - arrived_);
      const std::span<std::byte> direct = direct_.first(std::min(on_copy_, direct_.size()));
      const std::span<std::byte> buffered = memory_.subspan(arrived_ + direct.size(), on_copy_ - direct.size());
      direct_ = direct_.subspan(direct.size());
      // The bytes are copied without the lock. This is safe: the reader uses only bytes that have arrived, and
      // abandon() waits for the end of the copy.
      lock.unlock();
      if (!direct.empty()) std::memcpy(direct.data(), bytes.data() + skipped, direct.size());
      if (!buffered.empty()) std::memcpy(buffered.data(), bytes.data() + skipped + direct.size(), buffered.size());
      lock.lock();
      arrived_ += std::exchange(on_copy_, 0);
    }
    const std::size_t arrived = arrived_, enough = std::min(awaited_end_, size_bytes());
    const bool fulfilled = awaited_end_ > 0 && arrived >= enough, all = arrived == size_bytes_;
    const bool awaited = fulfilled || abandoned_;
    if (fulfilled) awaited_end_ = 0;   // the reader is notified only once
    lock.unlock();
    if (awaited) changed_.notify_all();
    return all;
  }
  /// Reports that the object does not exist.
  void report_missing() {
    const std::lock_guard lock(mutex_);
    missing_ = true;
    changed_.notify_all();
  }
  /// Ends the fetch with an error.
  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(why);
    changed_.notify_all();
  }

 private:
  // Minimum number of missing bytes for a direct write to the reader's buffer. If fewer bytes are missing, they are
  // written to the fetch's memory, because the reader may read them again.
  static constexpr std::size_t least_direct_bytes = std::size_t{256} << 10;

  const std::shared_ptr<transfer_object> object_;
  const std::uint64_t offset_bytes_;
  mutable std::mutex mutex_;   // guards all members below except buffered_from_, which only the reader uses
  std::condition_variable changed_{};
  std::span<std::byte> memory_;
  std::atomic<std::size_t> size_bytes_, arrived_ = 0;   // changed under the lock, and read without the lock
  std::size_t awaited_end_ = 0, buffered_from_ = 0;
  std::size_t on_copy_ = 0;         // number of bytes after arrived_ that are being copied now
  std::span<std::byte> direct_{};   // the part of a waiting reader's buffer that is not filled yet
  bool begun_ = false, missing_ = false, abandoned_ = false;
  std::exception_ptr failure_{};
};

}}}   // namespace millrace::detail
