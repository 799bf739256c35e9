// Defines the lease of a batch: the user's ownership of its slot (the memory of a batch) until release(). A batch_lease
// has the members that do not depend on the columns. batch_of<...> adds the columns.
//
//   mr::batch_lease b = run.next();
//   log(b.size(), b.epoch(), b.step());      // rows; numbers of the epoch and of the batch in the run
//   b.release();                             // frees the slot after the work of all streams that use it
//
// A lease is move-only. Errors: all members that access the batch throw setup_error after the lease was released or
// moved from. The result of next() at the end of a run has size() 0.
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

}   // namespace detail

/// A leased batch without its columns.
class batch_lease {
 public:
  batch_lease() = default;
  batch_lease(batch_lease&& other) noexcept;
  batch_lease& operator=(batch_lease&& other) noexcept;
  ~batch_lease() { release(); }

  /// Returns size() keys, one for the sample of each row. For sources other than shards of records,
  /// work/segment/sample_names.hpp describes the keys. The keys are valid until release(). Throws setup_error if the
  /// batch was released, or if keys were not requested by batch({.keys = true}).
  std::span<const std::string_view> keys() const;

  /// Returns whether the batch has keys, as requested by batch({.keys = true}).
  bool has_keys() const { return checked("has_keys()").meta_.keys != nullptr; }

  /// Returns the number of rows, including padding. A short last batch has fewer rows than the other batches, possibly
  /// 0.
  std::size_t size() const {
    if (had_batch_ && !from_) throw_empty("size()");
    return meta_.rows + meta_.extent.padding_rows;
  }
  /// Returns the total number of rows of all ranks in this step. Divide by this number to compute a mean over all
  /// ranks. The number is never 0. Masked rows of damaged samples count; padding rows of batch({.pad_last = true}) do
  /// not. Ranks may have different numbers of rows in a short last batch. Throws setup_error after bucket() on several
  /// ranks, because no rank knows the number in this case.
  std::size_t global_size() const;
  /// Returns the number of the epoch, from 0.
  std::uint64_t epoch() const { return checked("epoch()").meta_.epoch; }
  /// Returns the number of earlier batches of the run, including the batches before a resume.
  std::uint64_t step() const { return checked("step()").origin_.first_step + meta_.batch; }
  /// Returns the resume point after this batch.
  const millrace::position& position() const { return checked("position()").origin_.next; }
  /// Returns the resume point after this batch as text, for session_options::resume.
  std::string resume_text() const { return to_text(checked("resume_text()").origin_.next); }
  /// Returns the stream that was passed to to_device.
  stream_view stream() const { return checked("stream()").streams_[0]; }
  /// Returns the number of the batch's GPU, as for cudaSetDevice(); -1 if the batch is on the host.
  int device_ordinal() const { return checked("device_ordinal()").from_->backend().ordinal(); }
  /// Returns the slot number of the batch, in [0, session::slots()). With to_device({.fixed_slots = true}) the slot
  /// number is step() % slots().
  std::size_t slot() const { return checked("slot()").meta_.slot; }

  /// Declares that another stream also uses this batch. Later work in `stream` waits until the batch has arrived. The
  /// slot is not overwritten before `stream` has completed its work on the batch. Throws setup_error if the batch was
  /// released, or is used on too many streams.
  void also_used_on(stream_view stream);
  /// Returns whether `stream` is stream(), or was passed to also_used_on().
  bool is_used_on(stream_view stream) const;

  /// Releases the slot. Afterwards, the views and keys of this batch are no longer valid.
  void release() noexcept;
  /// Returns whether this object has a batch that was not released or moved from.
  explicit operator bool() const noexcept { return from_ != nullptr; }

 protected:
  [[noreturn]] static void throw_no_flags();
  /// Returns this object. Throws setup_error if this object has no batch. The message contains `call`, the name of the
  /// calling member.
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
  bool had_batch_ = false;   // whether this object has, or had, a batch
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

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/deliver/impl/batch_lease.inl>
#endif
