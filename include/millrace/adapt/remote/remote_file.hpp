// A file of a remote storage. Reads wait for the network. Ranges that the reader announces are prefetched.
//
//   mr::detail::remote_file file(context, object);
//   file.will_read({{{.offset_bytes = 0}}});                   // announces the complete file
//   const std::size_t got = file.read_at(0, buffer);
//
// Announced ranges are prefetched in parts, up to a limit of bytes ahead of the reader (fetch_window.hpp). All files
// share the memory for parts. Bytes that were not announced are fetched on demand, directly into the reader's buffer.
// Errors: the errors of transfer_engine.hpp. Threads: only one thread at a time may use a remote_file.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_window.hpp>
#include <millrace/adapt/remote/transfer/part_memory.hpp>
#include <millrace/adapt/remote/transfer/transfer_engine.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A table of objects (remote files) by name. Contains the objects that were opened, and the objects that a set index
/// lists. A set index is a file with the size and version of all shards of a set (set_index.hpp).
class remote_object_table {
 public:
  /// Returns the object with this name, or null if the table does not contain it.
  std::shared_ptr<transfer_object> get(const std::string& name) const;
  /// Stores the object with this name. If `object` is null, removes the entry.
  void put(const std::string& name, std::shared_ptr<transfer_object> object);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<transfer_object>> by_name_;
};

/// The prefetch window (limit of bytes ahead of the reader) of the most recently closed file.
class last_remote_window {
 public:
  explicit last_remote_window(std::size_t bytes) noexcept : last_(bytes) {}
  void keep(const fetch_window& w) noexcept;
  fetch_window of_next_file() const noexcept;

 private:
  mutable std::mutex mutex_;
  fetch_window last_;
};

/// The state that all files of a remote storage share.
struct remote_context {
  explicit remote_context(const remote_options& o) : part_bytes(o.part_bytes), memory(o.memory_bytes), engine(o) {}

  /// Returns the size of a part in bytes. The size is `part_bytes`, or less while many files are prefetching, because
  /// the parts of all these files share `memory`.
  std::size_t part_size() const noexcept;

  const std::size_t part_bytes;
  part_memory memory;
  std::atomic<std::size_t> readers{0};      // number of files that are prefetching
  last_remote_window windows{part_bytes};   // determines the initial window of the next file
  remote_object_table objects;
  transfer_engine engine;
};

/// An open object.
class remote_file final : public stored_file {
 public:
  static constexpr std::size_t usual_front_bytes = std::size_t{64} << 10;

  /// Opens an object: requests its first `front_bytes` bytes, and waits until the size and version of the object are
  /// known. Returns null if the object does not exist.
  static std::unique_ptr<remote_file> open(std::shared_ptr<remote_context> context, const std::string& name,
                                           std::size_t front_bytes = usual_front_bytes);
  /// Requests one byte to check whether an object exists. A HEAD request is not used, because some stores refuse HEAD
  /// requests, and a signed URL is usually valid only for GET.
  static std::shared_ptr<transfer_object> find(remote_context& context, const std::string& name);
  remote_file(std::shared_ptr<remote_context> context, std::shared_ptr<transfer_object> object)
      : context_(std::move(context)), object_(std::move(object)), name_(object_->name) {}
  ~remote_file() override;

  std::string_view name() const noexcept override { return name_; }
  file_identity identity() const override { return *object_->identity; }

  void will_read(std::span<const byte_range> ranges) override;
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;

 private:
  struct part {
    std::shared_ptr<range_fetch> fetch;
    part_memory::block memory;
  };
  /// The destructor abandons the part, unless the part was moved to another owner.
  struct abandon_guard {
    part& one;
    remote_context& context;
    ~abandon_guard();
  };

  static part make_part(remote_context& context, const std::shared_ptr<transfer_object>& object,
                        const byte_interval& range, part_memory::need how);

  std::uint64_t size_bytes() const noexcept { return object_->identity->size_bytes; }

  std::deque<part>::iterator find(std::uint64_t offset_bytes);
  /// If an announced range contains this offset, drops the ranges that were announced before this range, and requests
  /// parts until a part contains the offset. Otherwise does nothing.
  void reach(std::uint64_t offset_bytes);
  /// Requests announced parts until the prefetch window or the part memory is full.
  void request_ahead();
  /// Requests the next announced part. Returns false if no part is announced, or no memory is available.
  bool request_next(part_memory::need how);
  /// Fetches bytes directly into the reader's buffer. A large read is divided into several concurrent parts.
  std::size_t read_now(std::uint64_t offset_bytes, std::span<std::byte> buffer);
  void drop_parts_before(std::uint64_t offset_bytes);
  void drop_unannounced_parts();
  void drop_all() noexcept;
  void set_reading(bool reading) noexcept;

  const std::shared_ptr<remote_context> context_;
  const std::shared_ptr<transfer_object> object_;
  const std::string name_;
  std::deque<part> parts_;                // parts that are requested or complete, in the order of the reads
  std::deque<byte_interval> announced_;   // announced bytes that have not been requested yet
  fetch_window window_{context_->windows.of_next_file()};
  bool reading_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/impl/remote_file.inl>
#endif
