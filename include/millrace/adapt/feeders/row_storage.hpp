// row_storage is the interface through which a session receives rows that other machines compute.
//
//   class my_rows : public mr::row_storage {                 // your own transport, such as RDMA or shared memory
//    public:
//     void open(const mr::row_run& run) override { check(run.order, run.columns); }
//     std::size_t free_rows() override { return window() - requested(); }
//     void read_rows(const mr::row_range& range, mr::row_slots slots) override { send(range, std::move(slots)); }
//   };   // later, on any thread, for each row: slots.put(row, bytes, mr::crc32c(bytes))
//
// Set session_options::rows to such an object. A row is a pure function of the flow, the order, the epoch and the
// position. Therefore any machine can compute any row, and a lost row only costs time. The session reserves the next
// rows for its own workers, and requests later rows from the storage while free_rows() is above 0. The session computes
// a requested row itself if the storage destroys the row_slots, or if the answer is late and the workers have no other
// row to compute. The first result for a row is used; later results have no effect. Order, digests and resume points do
// not depend on the storage. The session still reads the samples of all rows. It needs them for the digests and the
// keys of the rows, and for rows that it must compute itself. A row consists of the bytes of its columns, in the order
// of batch<...>, little-endian and without padding. In a ragged column, each row begins with its length, an int32. In a
// column whose rows vary in height and width, each row begins with its height and its width, two int32.
// Errors: open() throws setup_error to refuse the run. If free_rows() or read_rows() throws, the session sends one
// notice, continues with its workers, and repeats its requests after a pause of 1 ms to 1 s. Bytes are untrusted: rows
// with a wrong size or checksum are not used.
// Threads: open() is called by the thread that creates the session, free_rows() and read_rows() by one other thread.
// Any thread may use a row_slots, but only one thread at a time. A row_slots may be used even after the end of the
// session; put() then returns false. Lifetime: the session shares ownership of the storage. Cost: a checksum and a
// copy of each row.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/run/session_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The run whose rows are requested. Another program computes the same rows if its `order`, its `columns` and its
/// stages are the same.
struct row_run {
  std::string order{};             ///< text of the resume point at position 0: seed, lanes, window, batch, data set
  std::string columns{};           ///< names, shapes and types of the columns
  std::size_t max_row_bytes = 0;   ///< size of each row, or the maximum if a column is ragged
};

/// Rows of one epoch: positions first, first + step, first + 2 * step, ... Positions are indices in the order of all
/// ranks together.
struct row_range {
  std::uint64_t epoch = 0, first = 0;
  std::size_t count = 0;
  std::size_t step = 1;   ///< number of ranks

  friend bool operator==(const row_range&, const row_range&) = default;
};

namespace detail {

struct row_request;
class row_requests;

/// Returns the maximum number of rows in a request: the number of rows that fit into 4 MiB, but at least 1 and at most
/// 64.
constexpr std::size_t max_request_rows(std::size_t max_row_bytes) noexcept {
  return std::clamp<std::size_t>((std::size_t{4} << 20) / std::max<std::size_t>(max_row_bytes, 1), 1, 64);
}

}   // namespace detail

/// The places of requested rows in the slots of a session. Move-only. When the row_slots is destroyed, the
/// session computes the rows that put() has not stored.
class row_slots {
 public:
  row_slots(row_slots&&) noexcept = default;
  row_slots& operator=(row_slots&& other) noexcept {
    std::swap(request_, other.request_);
    return *this;
  }
  ~row_slots();

  /// Writes row `row` of the range, counted from 0. `crc` is the CRC-32C of the bytes. Returns false if the bytes are
  /// not used: the row was already stored, the workers compute it, the session has ended, or the size or checksum is
  /// wrong.
  bool put(std::size_t row, std::span<const std::byte> bytes, std::uint32_t crc) noexcept;
  /// Returns whether at least one row is still missing. If no row is missing, you may cancel the request.
  bool is_needed() const noexcept;

 private:
  friend class detail::row_requests;
  explicit row_slots(std::shared_ptr<detail::row_request> request) noexcept : request_(std::move(request)) {}

  std::shared_ptr<detail::row_request> request_;   // null after a move
};

/// The interface of a storage of computed rows.
class row_storage : public row_provider {
 public:
  row_storage() = default;
  row_storage(const row_storage&) = delete;
  row_storage& operator=(const row_storage&) = delete;

  /// Starts a run. Called once by each session, before its first request. Throws setup_error to refuse the run.
  virtual void open(const row_run& run) = 0;
  /// Returns how many more rows the storage can compute now, in addition to the rows that are already requested.
  virtual std::size_t free_rows() = 0;
  /// Requests at most free_rows() rows. Must return without waiting for the rows.
  virtual void read_rows(const row_range& range, row_slots slots) = 0;

 private:
  detail::owner<detail::row_feed> new_feed(const detail::row_feed_options& of,
                                           std::shared_ptr<row_provider> self) final;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/row_storage.inl>
#endif
