// The entrance of a segment (stages that run together). The entrance stores the samples of one producer in order. Each
// sample has a ticket (its number), and workers claim tickets.
//
//   mr::detail::ticket_input<mr::record> in({.capacity = 512, .group = 256, .drop_partial = true, .batches = &ring});
//   in.connect(*dispatcher);                                            // or any claimed_ticket_gate
//   if (in.can_accept()) in.put(std::move(s));   in.publish();            // producer
//   auto sample = in.take(ticket, bytes);       in.freed(1, bytes);      // segment, after a claim
//
// In the last segment, tickets are rows, and `group` is the batch size. An incomplete batch at the end of an epoch is
// filled with void rows (rows without a sample), or dropped before a worker can claim it. If an epoch is a fixed number
// of batches, the end of a pass does not end a batch.
// In other segments, each end of a pass, of an epoch or of the run is a mark that has its own ticket.
// Errors: the errors of samples are passed on, not thrown. If an epoch or the run has no batch, a setup_error is stored
// as the next sample.
// Threads: one producer at a time; workers call take() and freed(). Lifetime: the gate of connect(), the listener of
// set_listener() and options::batches must outlive the ticket_input.
#pragma once

#include <millrace/sync/batch_ring.hpp>
#include <millrace/sync/queues.hpp>
#include <millrace/work/schedule/segment.hpp>
#include <millrace/work/segment/replay_log.hpp>
#include <millrace/work/segment/stage_passages.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The state of a run at the start of a session, and the ends of the epochs. Except for buffered_tokens, only the last
/// segment uses these values.
struct batch_boundaries {
  std::uint64_t first_step = 0;        ///< number of batches of the run before the first batch of the session
  std::uint64_t skipped_rows = 0;      ///< rows to skip, because they were delivered before the resume
  std::uint64_t buffered_tokens = 0;   ///< tokens in the packing stage when the first sample of the session arrives
  std::uint64_t epoch_batches = 0;     ///< batches per epoch; 0 if an epoch is a pass through the source
  std::uint64_t end_step = batch_ring::unknown;   ///< number of the first batch after the end of the run
  replay_log* log = nullptr;                      ///< records each batch; may be null
};

/// A sink that stores samples as tickets of one segment.
template <class T>
class ticket_input final : public sample_sink<T> {
 public:
  struct options {
    std::size_t capacity = 64;
    std::size_t group = 1;           ///< number of rows of a batch, if tickets are rows
    bool drop_partial = false;       ///< whether an incomplete batch at the end of an epoch is dropped
    batch_ring* batches = nullptr;   ///< receives the ends of epochs and of the run; null if tickets are not rows
    batch_boundaries boundaries{};
    stage_passages* passages = nullptr;   ///< counts of the previous stages; may be null
  };

  MILLRACE_RARE explicit ticket_input(options o) : options_(o), ring_(o.capacity), batch_end_(o.group) {}
  MILLRACE_RARE ~ticket_input() override = default;

  /// Sets the gate. publish() reports available tickets to the gate.
  void connect(claimed_ticket_gate& gate) noexcept { gate_ = &gate; }
  /// Sets the listener to call when space is free again.
  void set_listener(space_listener* producer) override { listener_ = producer; }

  /// Returns whether put() may be called for one more sample. If the run has a fixed number of batches, returns false
  /// after the last batch. After an error, samples are still accepted, but not delivered.
  bool can_accept() override { return settle() && !complete_ && ring_.can_accept(next_); }

  /// Stores the sample as the next ticket. Discards the sample if its row was delivered before the resume.
  void put(sample<T>&& s) override;
  /// Calls put() for each sample until no space is free.
  typename sample_sink<T>::accepted put_all(std::span<sample<T>> next) override;

  /// Fills the current batch with void rows.
  void end_batch() override;

  /// Ends the epoch. An epoch without a batch ends the run with a setup_error.
  void end_epoch() override;

  /// If tickets are not rows, stores the end mark of a pass. If tickets are rows, ends the run with a setup_error when
  /// a stage has dropped all samples of the pass, or after max_empty_passes consecutive passes without a row.
  void end_pass() override;

  /// Ends the run. Later calls have no effect.
  void finish(std::exception_ptr error) override;

  /// Writes as many void rows and pending end marks as fit into the free space. Returns whether all are written.
  bool settle() override { return (pads_ == 0 && !pending_ && !finished_) || settle_ends(); }

  /// Publishes the tickets that have been put so far. With drop_partial, does not publish an incomplete batch.
  void publish() override;

  /// Returns the position of the sample that the next put() stores. Returns `unknown` if tickets are not rows, or if
  /// that sample was delivered before the resume.
  std::uint64_t next_row() const noexcept override;
  /// Returns the number of available tickets that have not been removed yet.
  std::uint64_t backlog() const noexcept override { return gate_->available() - removed_.load(); }
  /// Returns the total size of the items that have been put and not yet removed.
  std::size_t held_bytes() const noexcept override;

  /// Returns the sample of a ticket that has been claimed and not yet removed.
  const sample<T>& peek(std::uint64_t ticket) const noexcept { return ring_.peek(ticket); }
  /// Removes and returns the sample of a claimed ticket. Adds the bytes of its item to `bytes`.
  sample<T> take(std::uint64_t ticket, std::size_t& bytes) { return std::move(*use(ticket, bytes)); }
  /// Returns a reference to the sample of a claimed ticket. The destructor of the reference removes the sample. Adds
  /// the bytes of the item to `bytes`.
  auto use(std::uint64_t ticket, std::size_t& bytes) noexcept {
    bytes += held_bytes_of(ring_.peek(ticket));
    return ring_.use(ticket);
  }
  /// Notifies the producer of free space. Called after `count` tickets with a total size of `bytes` were removed.
  void freed(std::uint64_t count, std::size_t bytes) noexcept {
    removed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    removed_.fetch_add(count);
    if (listener_) listener_->space_freed();
  }

 private:
  bool settle_ends();
  void put_row(sample<T>&& s);
  void put_entry(sample<T>&& s);
  void put_mark(sample<T>&& s);
  void drop(std::uint64_t ticket);

  /// Counts the row of a sample. Returns false if the row was delivered before the resume.
  bool count_row(const sample<T>& s) noexcept;
  void log_batch(bool ends_pass);
  void count_batch();
  std::exception_ptr run_is_over_error() const;
  std::exception_ptr nothing_left_error(std::size_t rows, const stage_passages::pass& pass) const;
  stage_passages::pass close_pass(bool describe);
  void add_entry(typename sample<T>::kind what, std::exception_ptr error);

  struct end_entry {
    typename sample<T>::kind what;
    std::exception_ptr error;
  };

  static constexpr std::uint64_t max_empty_passes = 100;   // stages may buffer items over many passes
  static constexpr std::size_t prefetched = 16;            // distance from the current sample to the prefetched one

  const options options_;
  item_ring<sample<T>> ring_;
  claimed_ticket_gate* gate_ = nullptr;
  space_listener* listener_ = nullptr;
  // The workers write removed_ and removed_bytes_, and the producer writes put_bytes_. Separate cache lines avoid false
  // sharing.
  alignas(64) std::atomic<std::uint64_t> removed_{0};
  std::atomic<std::size_t> removed_bytes_{0};
  alignas(64) std::atomic<std::size_t> put_bytes_{0};   // total size of all items that were put
  std::uint64_t next_ = 0;                              // the ticket of the next put()
  std::uint64_t batch_end_;                             // the first multiple of the group above next_
  std::optional<end_entry> pending_;                    // an end mark that waits for space
  std::size_t pads_ = 0;                                // number of void rows that are not written yet
  std::uint64_t epoch_start_ = 0;
  replay_log::batch_end row_{};                   // the last row that was put
  std::uint64_t rows_before_pass_ = 0;            // number of rows of the run before the current pass
  std::uint64_t passes_ = 0, empty_passes_ = 0;   // ended passes; consecutive passes without a row
  bool finished_ = false, complete_ = false;
};

}}}   // namespace millrace::detail

#include <millrace/work/segment/ticket_input.tpl.hpp>
