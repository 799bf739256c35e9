// The entrance of a segment: turns samples from one producer, in order, into tickets that workers claim.
//
//   mr::detail::ticket_input<mr::record> in({.capacity = 512, .group = 256, .drop_partial = true, .batches = &ring});
//   in.connect(*dispatcher);                                            // or any ticket_gate
//   if (in.can_accept()) in.put(std::move(s));   in.publish();            // producer
//   auto sample = in.take(ticket, bytes);       in.freed(1, bytes);      // segment, after a claim
//
// With a group (the batch size) tickets are rows. The last batch of an epoch is filled with void rows, or dropped
// before any worker can claim it. Therefore a sample that is not delivered is never decoded. Without a group, the end
// of an epoch and the end of the run are separate entries that are passed on in order. An epoch may also be a fixed
// number of batches. Then the ends of the source's passes are not boundaries.
// Errors: none thrown for data. An empty epoch or run becomes a setup_error at the position of the next sample.
// Threads: one producer at a time; workers call take() and freed(). Lifetime: the gate, the listener and the ring
// outlive it.
#pragma once

#include <millrace/sync/batch_ring.hpp>
#include <millrace/sync/item_ring.hpp>
#include <millrace/work/schedule/segment.hpp>
#include <millrace/work/segment/batch_boundaries.hpp>
#include <millrace/work/segment/stage_passages.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A sink that turns samples into tickets of one segment.
template <class T>
class ticket_input final : public sample_sink<T> {
 public:
  struct options {
    std::size_t capacity = 64;
    std::size_t group = 1;       ///< rows of a batch, if tickets are rows
    bool drop_partial = false;   ///< drops an incomplete batch at the end of an epoch
    batch_ring* batches = nullptr;    ///< receives the ends; null: tickets are not rows
    batch_boundaries boundaries{};
    stage_passages* passages = nullptr;   ///< counts of the stages before; may be null
  };

  explicit ticket_input(options o) : options_(o), ring_(o.capacity), batch_end_(o.group) {}

  /// Sets the gate that publish() notifies of available tickets.
  void connect(ticket_gate& gate) noexcept { gate_ = &gate; }
  /// Sets the listener to call when space is free again.
  void set_listener(space_listener* producer) override { listener_ = producer; }

  /// Returns whether put() may be called once. Stays true after an error, to discard the rest. Returns false after the
  /// last of a fixed number of batches; otherwise the source would be read forever.
  bool can_accept() override { return settle() && !complete_ && ring_.can_accept(next_); }

  /// Stores the sample as the next ticket, unless its row was delivered before the resume.
  void put(sample<T>&& s) override;
  /// As put() for each, until the space is used up.
  typename sample_sink<T>::accepted put_all(std::span<sample<T>> next) override;

  /// Fills the current batch with void rows.
  void end_batch() override;

  /// Ends the epoch. An epoch without a batch ends the run with a setup_error.
  void end_epoch() override;

  /// Passes on the mark. If tickets are rows: a pass without a row ends the run with a setup_error.
  void end_pass() override;

  /// Ends the run. Later calls have no effect.
  void finish(std::exception_ptr error) override;

  /// Writes void rows and pending ends, as far as there is space. Returns whether all are written.
  bool settle() override { return (pads_ == 0 && !pending_ && !finished_) || settle_ends(); }

  /// Publishes the tickets put so far. With drop_partial, an incomplete batch stays invisible.
  void publish() override;

  /// Returns the position of the next sample put, or `unknown`.
  std::uint64_t next_row() const noexcept override;
  /// Returns the available tickets that are not yet removed.
  std::uint64_t backlog() const noexcept override { return gate_->available() - removed_.load(); }
  /// Returns the bytes of all items put and not yet removed.
  std::size_t held_bytes() const noexcept override;

  /// Returns the sample of a ticket that is claimed and not yet removed.
  const sample<T>& peek(std::uint64_t ticket) const noexcept { return ring_.peek(ticket); }
  /// Removes and returns the sample of a claimed ticket. Adds the bytes of its item to `bytes`.
  sample<T> take(std::uint64_t ticket, std::size_t& bytes) { return std::move(*use(ticket, bytes)); }
  /// As take(), but without a move: the sample stays in the ring until the returned object is destroyed.
  auto use(std::uint64_t ticket, std::size_t& bytes) noexcept {
    bytes += held_bytes_of(ring_.peek(ticket));
    return ring_.use(ticket);
  }
  /// Notifies the producer of free space. Called after `count` tickets of `bytes` bytes in all were removed.
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

  /// Returns false for a row that was delivered before the resume.
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

  static constexpr std::uint64_t max_empty_passes = 100;   // of a flow whose stages may buffer items over many passes
  static constexpr std::size_t prefetched = 16;   // samples may have been read long ago

  const options options_;
  item_ring<sample<T>> ring_;
  ticket_gate* gate_ = nullptr;
  space_listener* listener_ = nullptr;
  // The workers write the first two, the producer writes the third. They are on separate cache lines; otherwise each
  // side would wait for the other's cache.
  alignas(64) std::atomic<std::uint64_t> removed_{0};
  std::atomic<std::size_t> removed_bytes_{0};
  alignas(64) std::atomic<std::size_t> put_bytes_{0};   // bytes of all items ever put
  std::uint64_t next_ = 0;             // ticket of the next put
  std::uint64_t batch_end_;            // the first multiple of the group beyond it
  std::optional<end_entry> pending_;   // an end that waits for space
  std::size_t pads_ = 0;               // void rows still to write
  std::uint64_t epoch_start_ = 0;
  replay_log::batch_end row_{};        // the last row put
  std::uint64_t rows_before_pass_ = 0;   // of the run
  std::uint64_t passes_ = 0, empty_passes_ = 0;   // ended; without a row since the last one with a row
  bool finished_ = false, complete_ = false;
};

}}}  // namespace millrace::detail

#include <millrace/work/segment/ticket_input.tpl.hpp>
