// The lease on the memory of a batch, and all members that do not depend on its columns. batch_of<...> adds the
// columns.
//
//   mr::batch_lease b = run.next();
//   log(b.size(), b.epoch(), b.step());      // rows; numbers of the epoch and of the batch in the run
//   b.release();                             // the slot is free once the streams that use it have finished with it
//
// Move-only. Errors: all members that concern the batch throw setup_error once it was released or moved from; size() of
// a lease that never had a batch, as at the end of a run, is 0.
// Threads: one thread at a time. Lifetime: keys are valid until release().
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/deliver/batch_output.hpp>
#include <millrace/item/column/batch_origin.hpp>

#include <array>
#include <memory>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

struct batch_maker;

}  // namespace detail

/// A leased batch without its columns.
class batch_lease {
 public:
  batch_lease() = default;
  batch_lease(batch_lease&& other) noexcept;
  batch_lease& operator=(batch_lease&& other) noexcept;
  ~batch_lease() { release(); }

  /// Returns the key of each row's sample: [size()]. work/segment/sample_names.hpp describes the keys of sources
  /// without shards of records. The keys are valid until release(). Throws setup_error if the batch was released, or
  /// batch({.keys = true}) did not request keys.
  std::span<const std::string_view> keys() const;

  /// Returns the number of rows, including padding; fewer in a short last batch, even 0.
  std::size_t size() const {
    if (had_batch_ && !from_) throw_empty("size()");
    return meta_.rows + meta_.extent.padding_rows;
  }
  /// Returns the rows of all ranks together in this step, the divisor of a mean over the global batch. It is never 0.
  /// Rows of padding by batch({.pad_last = true}) do not count, masked rows of damaged samples do. With an index, a
  /// short last batch counts, too; ranks may have unequal shares of it, or none. Without an index, several ranks run
  /// epochs of a fixed number of batches. Then no batch is short, so it is size() x world size. With one rank it is
  /// size() less the padding. Throws setup_error after bucket() on several ranks, where the samples of each rank
  /// determine its rows.
  std::size_t global_size() const;
  /// Returns the epoch, from 0.
  std::uint64_t epoch() const { return checked("epoch()").meta_.epoch; }
  /// Returns the number of batches before this one in the run, including those before a resume.
  std::uint64_t step() const { return checked("step()").origin_.first_step + meta_.batch; }
  /// Returns the resume point after this batch.
  const millrace::position& position() const { return checked("position()").origin_.next; }
  /// Returns the resume point after this batch as text, for session_options::resume.
  std::string resume_text() const { return to_text(checked("resume_text()").origin_.next); }
  /// Returns the stream of to_device.
  stream_view stream() const { return checked("stream()").streams_[0]; }
  /// Returns the GPU of the batch, as numbered by cudaSetDevice; -1 on the host.
  int device_ordinal() const { return checked("device_ordinal()").from_->backend().ordinal(); }
  /// Returns the slot of the batch, in [0, session::slots()). With to_device({.fixed_slots = true}) it is step() %
  /// slots().
  std::size_t slot() const { return checked("slot()").meta_.slot; }

  /// Names another stream that uses this batch. From then on, this stream waits until the batch arrives. The slot is
  /// not written again before that stream has finished with it. Throws setup_error if the batch was released, or is
  /// used on too many streams.
  void also_used_on(stream_view stream);

  /// Releases the slot now. The views are no longer valid.
  void release() noexcept;
  /// Returns whether this object (still) has a batch.
  explicit operator bool() const noexcept { return from_ != nullptr; }

 protected:
  [[noreturn]] static void throw_no_flags();
  /// Returns this batch. Throws setup_error if it has none; `call` names the member that needs it.
  const batch_lease& checked(const char* call) const {
    if (!from_) throw_empty(call);
    return *this;
  }
  [[noreturn]] static void throw_empty(const char* call);
  const detail::batch_output& output() const noexcept { return *from_; }
  const detail::ready_batch& meta() const noexcept { return meta_; }

 private:
  friend struct detail::batch_maker;
  batch_lease(std::shared_ptr<detail::batch_output> from, const detail::ready_batch& meta, stream_view stream,
              const detail::batch_origin& origin);

  std::shared_ptr<detail::batch_output> from_;
  detail::ready_batch meta_{};
  detail::batch_origin origin_{};
  std::array<stream_view, detail::batch_output::max_streams> streams_{};
  std::size_t stream_count_ = 1;
  bool had_batch_ = false;   // this object has a batch, or had one before it was released or moved from
};

namespace detail {

/// Creates leases and batches, for the session and for tests.
struct batch_maker {
  static batch_lease lease(std::shared_ptr<batch_output> from, const ready_batch& meta, stream_view stream,
                           const batch_origin& origin) {
    return {std::move(from), meta, stream, origin};
  }
  template <class Batch>
  static Batch batch(const typename Batch::places& where, batch_lease&& lease) {
    return {where, std::move(lease)};
  }
};

}  // namespace detail

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/deliver/impl/batch_lease.inl>
#endif
