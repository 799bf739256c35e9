// Defines the lease of a batch: the user's ownership of its slot (the memory of a batch) until release(). A batch_lease
// has the members that do not depend on the columns. batch_of<...> adds the columns.
//
//   mr::batch_lease b = run.next();
//   log(b.size(), b.epoch(), b.step());      // rows; numbers of the epoch and of the batch in the run
//   b.release();                             // frees the slot after the work of all streams that use it
//
// A lease is move-only. Errors: all members that access the batch throw setup_error after the lease was released or
// moved from. At the end of a run, next() returns a lease without a batch; size() of this lease is 0 and does not
// throw.
// Threads: one thread at a time. Lifetime: keys are valid until release().
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/device.hpp>
#include <millrace/item/column/batch_origin.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Delivers finished batches to the trainer (the thread that calls next()) as leases. A lease is the user's ownership
// of a slot (the memory of a batch). sync/batch_ring.hpp describes the states READY, IN_USE and FREE of a slot.
//
//   host_batch_output      host device: the lease is the host slot itself, READY -> IN_USE -> FREE
//   device_batch_output    other devices: a stager (a thread) copies host slots into a ring of device slots
//
// Threads: one trainer calls take(). Any thread may call release(); slots may be released in any order.
// Lifetime: leases share ownership of the batch_output, which owns all slot memory. Therefore a batch may outlive its
// session.
// Errors: the errors of the device_backend.

/// Delivers batches and frees their slots.
class batch_output : public pipeline_node {
 public:
  /// Maximum number of streams that may use one batch.
  static constexpr std::size_t max_streams = 8;

  explicit batch_output(std::shared_ptr<device_backend> backend);
  batch_output(const batch_output&) = delete;
  batch_output& operator=(const batch_output&) = delete;
  ~batch_output() override;

  /// The memory that a session needs.
  struct memory {
    std::size_t host_slots = 0, rows = 0, batch_bytes = 0;
    bool keys = false;   ///< whether each slot has space for the keys of its rows
  };
  /// Allocates all slots. Called when the size of a batch is known.
  virtual void allocate(const memory& needed) = 0;
  /// Returns the batch with this number, or the reason why no batch is available. `data` of the result is the address
  /// on the device. If `stop_at_epoch` is set and the batch is the first of an epoch, the function returns epoch_end
  /// instead.
  virtual batch_ring::take_result take(std::uint64_t batch, bool stop_at_epoch) = 0;
  /// Returns whether take() would return something other than not_yet. Never calls the device.
  virtual bool can_take(std::uint64_t batch, bool stop_at_epoch) const = 0;
  /// Makes another stream wait until a leased batch is copied to the device.
  virtual void used_on(std::size_t slot, stream_view stream) = 0;
  /// Frees a leased slot after all streams in `used_on` have completed their work on the slot.
  virtual void release(std::size_t slot, std::span<const stream_view> used_on) noexcept = 0;
  /// Returns whether the next batch needs a slot that is still leased. `batch` is the number of the next batch.
  virtual bool waits_for_lease(std::uint64_t batch) const = 0;
  /// Returns the number of slots that can be leased.
  virtual std::size_t lease_slots() const noexcept = 0;
  /// Returns the number of leased slots.
  virtual std::size_t leased() const noexcept = 0;
  /// Returns the state of the slots as text.
  std::string waits(std::uint64_t) const override;
  /// Returns the time at which the copy of a delivered batch completed; 0 if unknown.
  virtual std::uint64_t arrived_ns(std::uint64_t) const noexcept { return 0; }
  /// Returns the number of batches that are ready, on the host or on the device.
  virtual std::size_t ready() const { return host_.ready(); }

  /// Returns the doorbell (sync/doorbell.hpp), which wakes sleeping threads when the result of can_take() may have
  /// changed.
  doorbell& bell() noexcept { return host_.bell(); }
  /// Returns the ring of host slots.
  batch_ring& host_slots() noexcept { return host_; }
  /// Returns the device on which the batches are delivered.
  device_backend& backend() const noexcept { return *backend_; }

  /// Returns whether this process was forked from the process that created the slots.
  bool is_forked() const noexcept;

  /// Sets the object that is notified when a host slot is freed. Pass null after the workers have stopped.
  void set_listener(space_listener* listener) noexcept;

 protected:
  void allocate_host(const memory& needed, bool fixed);
  void free_host_slot(std::size_t slot) noexcept;

  batch_ring host_;
  const std::shared_ptr<device_backend> backend_;

 private:
  const int process_;
  std::vector<void*> host_memory_;
  std::mutex listener_mutex_;
  space_listener* listener_ = nullptr;
};

/// Throws the setup_error for a caller that has leased all slots. If `fixed` has a value, the error instead reports
/// that the caller has leased the one slot that batch `*fixed` must use (to_device({.fixed_slots = true})).
[[noreturn]] void throw_all_leased(const batch_output& from, std::optional<std::uint64_t> fixed);

/// Delivers batches for devices that use them in host memory.
class host_batch_output final : public batch_output {
 public:
  host_batch_output(std::shared_ptr<device_backend> backend, bool fixed_slots);

  void allocate(const memory& needed) override { allocate_host(needed, fixed_slots_); }

  batch_ring::take_result take(std::uint64_t batch, bool stop_at_epoch) override {
    return host_.take(batch, stop_at_epoch);
  }
  bool can_take(std::uint64_t batch, bool stop_at_epoch) const override;
  void used_on(std::size_t, stream_view) override {}
  void release(std::size_t slot, std::span<const stream_view>) noexcept override { free_host_slot(slot); }
  bool waits_for_lease(std::uint64_t batch) const override { return host_.waits_for_slot(batch); }
  std::size_t lease_slots() const noexcept override { return host_.count(); }
  std::size_t leased() const noexcept override { return host_.in_use(); }

  void start() override {}
  bool advance() override { return false; }
  void stop() noexcept override {}
  void join() noexcept override {}

 private:
  const bool fixed_slots_;
};

}}}   // namespace millrace::detail

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

  /// Returns size() keys, one for each row. The key of a padding row (a masked row that completes the last batch) is
  /// empty. work/segment/sample_names.hpp describes the keys of each source. The keys are valid until release(). Throws
  /// setup_error if the batch was released, or if keys were not requested by batch({.keys = true}).
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
  /// Returns the slot number of the batch, in [0, session::slots()). With to_device({.fixed_slots = true}), batch n of
  /// the session, counted from 0, is in slot n % slots().
  std::size_t slot() const { return checked("slot()").meta_.slot; }

  /// Declares that another stream also uses this batch. Work that is added to `stream` after this call waits for the
  /// copy of the batch. The slot is not overwritten before `stream` has completed its work on the batch. Throws
  /// setup_error if the batch was released, or if batch_output::max_streams streams already use it.
  void also_used_on(stream_view stream);
  /// Returns whether `stream` is stream(), or was passed to also_used_on().
  bool is_used_on(stream_view stream) const;

  /// Releases the slot. Afterwards, the views and keys of this batch are no longer valid.
  void release() noexcept;
  /// Returns whether this object currently owns a batch.
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
