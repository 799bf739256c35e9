// The entrance of a segment: turns samples from one producer, in order, into tickets that workers claim.
//
//   mr::detail::ticket_input<mr::record> in({.capacity = 512, .group = 256, .drop_partial = true, .batches = &ring});
//   in.connect(*dispatcher);                                            // or any ticket_gate
//   if (in.can_accept()) in.put(std::move(s));   in.publish();            // producer
//   auto taken = in.take(ticket, bytes);       in.freed(1, bytes);      // segment, after a claim
//
// With a group (the batch size) tickets are rows. The last batch of an epoch is filled with void rows, or dropped
// before any worker can claim it. So a sample that is not delivered is never decoded. Without a group, the end of an
// epoch and the end of the run are separate entries that travel in order. An epoch may also be a fixed number of
// batches. Then the ends of the source's passes are no borders.
// Errors: none thrown for data. An empty epoch or run becomes a setup_error that takes the position of the next
// sample.
// Threads: one producer at a time; workers call take() and freed(). Lifetime: the gate, the listener and the ring
// outlive it.
#pragma once

#include <millrace/sync/batch_ring.hpp>
#include <millrace/sync/item_ring.hpp>
#include <millrace/work/replay_log.hpp>
#include <millrace/work/segment.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The state of a run when its session starts, and the ends of its epochs. Used by the last segment only.
struct batch_borders {
  std::uint64_t first_step = 0;        ///< batches of the run before the session's first
  std::uint64_t skipped_rows = 0;      ///< rows delivered before, which a replay makes again
  std::uint64_t held = 0;              ///< tokens that a packing stage holds before the replay's first sample
  std::uint64_t epoch_batches = 0;     ///< 0: an epoch is a pass through the source
  std::uint64_t end_step = batch_ring::unknown;   ///< the run ends before this batch
  replay_log* log = nullptr;           ///< told of each batch; may be null
};

/// A sink that turns samples into tickets of one segment.
template <class T>
class ticket_input final : public sample_sink<T> {
 public:
  struct options {
    std::size_t capacity = 64;
    std::size_t group = 1;       ///< rows of a batch, if tickets are rows
    bool drop_partial = false;   ///< drops a batch that the end of an epoch leaves short
    batch_ring* batches = nullptr;    ///< told of the ends; null: tickets are no rows
    batch_borders borders{};
  };

  explicit ticket_input(options o) : options_(o), ring_(o.capacity) {}

  /// Sets the gate that publish() tells how many tickets are available.
  void connect(ticket_gate& gate) noexcept { gate_ = &gate; }
  /// Sets the listener to call when space appears.
  void set_listener(space_listener* producer) override { listener_ = producer; }

  /// Returns whether put() may be called once. Stays true after an error, to swallow the rest. Returns false after the
  /// last of a fixed number of batches; otherwise the source would be read forever.
  bool can_accept() override { return settle() && !complete_ && ring_.can_accept(next_); }

  /// Makes the sample the next ticket, unless its row was delivered before the resume.
  void put(sample<T>&& s) override {
    if (options_.batches && !count_row(s)) return;
    put_bytes_.store(put_bytes_.load(std::memory_order_relaxed) + held_bytes_of(*s.item), std::memory_order_relaxed);
    ring_.put(next_++, std::move(s));
    if (options_.batches && next_ % options_.group == 0) count_batch(false);
  }

  /// Fills the current batch with void rows.
  void end_batch() override {
    const std::size_t partial = static_cast<std::size_t>(next_ % options_.group);
    if (partial == 0) return;   // full, or delivered before the resume
    pads_ = options_.group - partial;
    count_batch(false);
    settle();
  }

  /// Ends the epoch. An epoch without a batch ends the run with a setup_error.
  void end_epoch() override {
    if (!options_.batches) {
      add_entry(sample<T>::kind::epoch_end, nullptr);
      return;
    }
    const bool empty = std::exchange(row_.rows_of_pass, 0) == 0;
    if (options_.borders.epoch_batches > 0) {
      if (empty) finish(nothing_left_error(0));
      return;
    }
    const std::size_t partial = static_cast<std::size_t>(next_ % options_.group);
    if (options_.drop_partial)
      for (std::size_t i = 0; i < partial; ++i) drop(--next_);
    else pads_ = partial > 0 ? options_.group - partial : 0;
    if (pads_ > 0) count_batch(true);
    if (next_ + pads_ == epoch_start_) {
      // After a resume at the end of an epoch, nothing of that epoch is left, which is no error.
      if (next_ > 0 || options_.borders.first_step == 0 || empty) finish(nothing_left_error(partial));
      return;
    }
    epoch_start_ = next_ + pads_;
    options_.batches->mark_epoch_start(epoch_start_ / options_.group);
    settle();
  }

  /// Ends the run. Later calls have no effect.
  void finish(std::exception_ptr error) override {
    if (finished_) return;
    finished_ = true;
    if (options_.batches && !error && next_ + pads_ == 0) error = run_is_over_error();
    if (!options_.batches || error) {
      const std::uint64_t entry = next_;
      add_entry(sample<T>::kind::failed, std::move(error));
      if (options_.batches) pads_ = static_cast<std::size_t>(options_.group - 1 - entry % options_.group);
    }
    const std::uint64_t end = next_ + (pending_ ? 1 : 0) + pads_;
    if (options_.batches) options_.batches->set_end(end / options_.group);
    settle();
  }

  /// Writes void rows and ends as far as there is space. Returns whether all are written.
  bool settle() override {
    bool wrote = false;
    while ((pending_ || pads_ > 0) && ring_.can_accept(next_)) {
      if (pending_) {
        ring_.put(next_++, {.what = pending_->what, .error = std::move(pending_->error)});
        pending_.reset();
      } else {
        ring_.put(next_++, {.what = sample<T>::kind::void_row});
        --pads_;
      }
      wrote = true;
    }
    if (wrote) publish();
    return !pending_ && pads_ == 0;
  }

  /// Makes the tickets put so far available. With drop_partial, an incomplete batch stays invisible.
  void publish() override {
    const bool hold_back = options_.drop_partial && !finished_;
    const std::uint64_t visible = hold_back ? next_ / options_.group * options_.group : next_;
    if (visible > gate_->available()) gate_->set_available(visible);
  }

  /// Returns the position of the next sample put, or `unknown`.
  std::uint64_t next_row() const noexcept override {
    const bool counts = options_.batches && row_.rows_of_run >= options_.borders.skipped_rows;
    return counts ? next_ + pads_ : error_location::unknown;
  }
  /// Returns the available tickets that are not yet taken.
  std::uint64_t backlog() const noexcept override { return gate_->available() - taken_.load(); }
  /// Returns the bytes of all items put and not yet taken.
  std::size_t held_bytes() const noexcept override {
    const std::size_t taken = taken_bytes_.load(std::memory_order_relaxed);
    const std::size_t put = put_bytes_.load(std::memory_order_relaxed);
    return put > taken ? put - taken : 0;
  }

  /// Returns the sample of a ticket that is claimed and not yet taken.
  const sample<T>& peek(std::uint64_t ticket) const noexcept { return ring_.peek(ticket); }
  /// Takes the sample of a claimed ticket. Adds the bytes of its item to `bytes`.
  sample<T> take(std::uint64_t ticket, std::size_t& bytes) {
    sample<T> s = ring_.take(ticket);
    if (s.item) bytes += held_bytes_of(*s.item);
    return s;
  }
  /// Tells the producer to continue. Call it after `count` tickets of `bytes` bytes in all were taken.
  void freed(std::uint64_t count, std::size_t bytes) noexcept {
    taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    taken_.fetch_add(count);
    if (listener_) listener_->space_freed();
  }

 private:
  void drop(std::uint64_t ticket) {
    std::size_t bytes = 0;
    static_cast<void>(take(ticket, bytes));
    taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  /// Returns false for a row that was delivered before the resume.
  bool count_row(const sample<T>& s) noexcept {
    if (s.ordinal != row_.ordinal || s.epoch != row_.pass) row_.rows_of_ordinal = 0;
    row_.ordinal = s.ordinal;
    row_.pass = s.epoch;
    row_.held = s.held;
    ++row_.rows_of_ordinal;
    ++row_.rows_of_pass;
    return ++row_.rows_of_run > options_.borders.skipped_rows;
  }

  void count_batch(bool ends_pass) {
    const batch_borders& b = options_.borders;
    row_.ends_pass = ends_pass;
    if (b.log) b.log->batch_ends(row_);
    if (b.epoch_batches == 0) return;
    const std::uint64_t batch = (next_ + pads_) / options_.group, step = b.first_step + batch;
    if (step % b.epoch_batches == 0) options_.batches->mark_epoch_start(batch);
    if (step < b.end_step) return;
    complete_ = true;
    finish(nullptr);
  }

  std::exception_ptr run_is_over_error() const {
    return std::make_exception_ptr(setup_error("the run is over: its resume point is the end of its last epoch",
                                               "Raise session_options::epochs to go on, which counts from the first "
                                               "start"));
  }

  std::exception_ptr nothing_left_error(std::size_t rows) const {
    return std::make_exception_ptr(
        setup_error("an epoch has only " + std::to_string(rows) + " samples, fewer than the batch size of " +
                        std::to_string(options_.group) + (rows > 0 ? ", and drop_last drops them" : ""),
                    "Use a smaller batch, more data, or batch({.drop_last = false})"));
  }

  void add_entry(typename sample<T>::kind what, std::exception_ptr error) {
    pending_ = end_entry{what, std::move(error)};
    settle();
  }

  struct end_entry {
    typename sample<T>::kind what;
    std::exception_ptr error;
  };

  const options options_;
  item_ring<sample<T>> ring_;
  ticket_gate* gate_ = nullptr;
  space_listener* listener_ = nullptr;
  // The workers write the first two, the producer writes the third. They lie on separate cache lines, or each side
  // would wait for the other's cache.
  alignas(64) std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::size_t> taken_bytes_{0};
  alignas(64) std::atomic<std::size_t> put_bytes_{0};   // bytes of all items ever put
  std::uint64_t next_ = 0;             // ticket of the next put
  std::optional<end_entry> pending_;   // an end that found no space
  std::size_t pads_ = 0;               // void rows still to write
  std::uint64_t epoch_start_ = 0;
  replay_log::batch_end row_{};        // the last row put
  bool finished_ = false, complete_ = false;
};

}}}  // namespace millrace::detail
