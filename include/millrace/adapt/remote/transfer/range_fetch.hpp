// A range of a remote object on its way: its bytes can be read as soon as they are there.
//
//   auto part = std::make_shared<mr::detail::range_fetch>(object, 0, memory);   // a reader makes it,
//   engine.submit(part);                                                        // the network's thread fills it,
//   part->wait_into(0, buffer);                                                 // and the reader waits for its bytes
//
// Errors: a wait throws what ended the fetch. Threads: one reader and the network's thread.
// Lifetime: the memory lives until a wait has thrown or has given all bytes, or abandon() has returned.
#pragma once

#include <millrace/io/file/storage.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An object, and what all requests for it share.
struct remote_object {
  std::string name{};
  std::optional<file_identity> identity{};   ///< set by the first answer, before any other fetch begins
  std::string redirected_to{};               ///< used by the network's thread alone
  bool is_assumed = false;                   ///< the identity is what a set index says; no answer has told it
};

/// A range, the memory for it, and how much of it has arrived.
class range_fetch {
 public:
  range_fetch(std::shared_ptr<remote_object> of, std::uint64_t offset_bytes, std::span<std::byte> memory)
      : object_(std::move(of)), offset_bytes_(offset_bytes), memory_(memory), size_bytes_(memory.size()) {}
  range_fetch(const range_fetch&) = delete;
  range_fetch& operator=(const range_fetch&) = delete;

  const std::shared_ptr<remote_object>& object() const noexcept { return object_; }
  std::uint64_t offset_bytes() const noexcept { return offset_bytes_; }

  /// Waits until so many bytes at the front are there, or all there are. Returns how many are there.
  std::size_t wait_for(std::size_t bytes);
  /// Waits until the bytes from `from` on are there, and puts them into `to`. Many of them that come while it waits go
  /// there alone, and not through the memory, which has no bytes before buffered_from() then.
  void wait_into(std::size_t from, std::span<std::byte> to);
  /// Returns where the bytes that the memory has begin; those before were put into a reader's buffer.
  std::size_t buffered_from() const noexcept { return buffered_from_; }
  /// Waits until the object's identity is known. Returns whether the object is there.
  bool wait_for_identity();
  /// Returns how many bytes are there.
  std::size_t arrived() const noexcept { return arrived_; }
  /// Returns the size of the range; it shrinks to the end of the object with its identity.
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  std::uint64_t end_byte() const noexcept { return offset_bytes_ + size_bytes(); }
  /// Ends the fetch for its reader: nothing is written to the memory any more.
  void abandon();

  // The network's thread calls the rest.

  /// Returns whether nobody waits for more bytes.
  bool is_over() const;
  /// Takes the identity of the object that the first answer told.
  void begin(const std::optional<file_identity>& identity);
  /// Takes bytes from `first_byte` of the object on. Those that are there already are not taken again.
  /// Returns whether all bytes are there, or nobody wants more.
  bool take(std::uint64_t first_byte, std::span<const std::byte> bytes);
  /// Says that there is no such object.
  void miss();
  /// Ends the fetch with an error.
  void fail(std::exception_ptr why);

 private:
  static constexpr std::size_t least_direct_bytes = std::size_t{256} << 10;   // less may be read again

  const std::shared_ptr<remote_object> object_;
  const std::uint64_t offset_bytes_;
  mutable std::mutex mutex_;   // guards all members below; the reader's thread alone uses buffered_from_
  std::condition_variable changed_{};
  std::span<std::byte> memory_;
  std::atomic<std::size_t> size_bytes_, arrived_ = 0;   // changed under the lock, looked at without it
  std::size_t awaited_end_ = 0, buffered_from_ = 0;
  std::size_t on_copy_ = 0;   // bytes behind arrived_ that are copied just now
  std::span<std::byte> direct_{};   // the rest of a waiting reader's buffer, for the bytes from arrived_ on
  bool begun_ = false, missing_ = false, abandoned_ = false;
  std::exception_ptr failure_{};
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/range_fetch.inl>
#endif
