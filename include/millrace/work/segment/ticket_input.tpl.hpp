// Defines the members of the templates in ticket_input.hpp.
#pragma once

#include <millrace/work/segment/ticket_input.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class T>
MILLRACE_INLINE void ticket_input<T>::put(sample<T>&& s) {
  static_cast<void>(put_all(std::span(&s, 1)));
}

template <class T>
MILLRACE_INLINE auto ticket_input<T>::put_all(std::span<sample<T>> next) -> typename sample_sink<T>::accepted {
  typename sample_sink<T>::accepted all;
  if (next.empty() || !settle()) return all;
  std::size_t put_bytes = put_bytes_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (complete_ || !ring_.can_accept(next_)) break;
    if (i + prefetched < next.size()) prefetch_held_bytes(next[i + prefetched]);
    sample<T>& s = next[i];
    const std::size_t bytes = held_bytes_of(s);
    all.bytes += bytes;
    ++all.samples;
    if (options_.batches && !count_row(s)) continue;
    put_bytes += bytes;
    put_row(std::move(s));
  }
  put_bytes_.store(put_bytes, std::memory_order_relaxed);
  return all;
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::put_row(sample<T>&& s) {
  // Writes the log first, because the batch must not get this row if the memory for the log is exhausted.
  const bool fills_batch = options_.batches && next_ + 1 == batch_end_;
  if (fills_batch) log_batch(false);
  put_entry(std::move(s));
  if (fills_batch) count_batch();
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::end_batch() {
  const std::size_t partial = static_cast<std::size_t>(next_ % options_.group);
  if (partial == 0) return;   // the batch is full, or was delivered before the resume
  log_batch(false);
  pads_ = options_.group - partial;
  count_batch();
  settle();
}

template <class T>
MILLRACE_RARE void ticket_input<T>::end_epoch() {
  if (!options_.batches) {
    add_entry(sample<T>::kind::epoch_end, nullptr);
    return;
  }
  const bool empty = std::exchange(row_.rows_of_pass, 0) == 0;
  rows_before_pass_ = row_.rows_of_run;
  const bool resumed_within = passes_++ == 0 && options_.boundaries.first_step > 0;   // begins within a pass
  if (options_.boundaries.epoch_batches > 0) {
    const auto pass = close_pass(empty);
    if (empty && !resumed_within) finish(nothing_left_error(0, pass));
    return;
  }
  const std::size_t partial = static_cast<std::size_t>(next_ % options_.group);
  if (options_.drop_partial) {
    for (std::size_t i = 0; i < partial; ++i) drop(--next_);
  } else if (partial > 0) {
    log_batch(true);
    pads_ = options_.group - partial;
    count_batch();
  }
  const auto pass = close_pass(next_ + pads_ == epoch_start_);
  if (next_ + pads_ == epoch_start_) {
    // After a resume at the end of an epoch, no row of that epoch remains. This is not an error.
    if (next_ > 0 || options_.boundaries.first_step == 0 || empty) finish(nothing_left_error(partial, pass));
    return;
  }
  epoch_start_ = next_ + pads_;
  options_.batches->mark_epoch_start(epoch_start_ / options_.group);
  settle();
}

template <class T>
MILLRACE_RARE void ticket_input<T>::end_pass() {
  if (!options_.batches) {
    add_entry(sample<T>::kind::pass_end, nullptr);
    return;
  }
  const bool empty = std::exchange(rows_before_pass_, row_.rows_of_run) == row_.rows_of_run;
  const auto pass = close_pass(empty);
  const bool resumed_within = passes_++ == 0 && options_.boundaries.first_step > 0;   // begins within a pass
  empty_passes_ = empty ? empty_passes_ + 1 : 0;
  if (!empty || resumed_within) return;
  if (pass.nothing || empty_passes_ == max_empty_passes) finish(nothing_left_error(0, pass));
}

template <class T>
MILLRACE_INLINE stage_passages::pass ticket_input<T>::close_pass(bool describe) {
  return options_.passages ? options_.passages->close_pass(describe) : stage_passages::pass();
}

template <class T>
MILLRACE_RARE void ticket_input<T>::finish(std::exception_ptr error) {
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

template <class T>
MILLRACE_RARE bool ticket_input<T>::settle_ends() {
  bool wrote = false;
  while ((pending_ || pads_ > 0) && ring_.can_accept(next_)) {
    if (pending_) {
      put_mark({.item = std::move(pending_->error), .what = pending_->what});
      pending_.reset();
    } else {
      put_mark({.what = sample<T>::kind::void_row});
      --pads_;
    }
    wrote = true;
  }
  if (wrote) publish();
  const bool all = !pending_ && pads_ == 0;
  if (all && finished_ && gate_) {
    publish();
    gate_->set_last();
  }
  return all;
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::publish() {
  const bool hides_partial = options_.drop_partial && !finished_;
  const std::uint64_t visible = hides_partial ? next_ / options_.group * options_.group : next_;
  if (visible > gate_->available()) gate_->set_available(visible);
}

template <class T>
MILLRACE_INLINE std::uint64_t ticket_input<T>::next_row() const noexcept {
  const bool counts = options_.batches && row_.rows_of_run >= options_.boundaries.skipped_rows;
  return counts ? next_ + pads_ : error_location::unknown;
}

template <class T>
MILLRACE_INLINE std::size_t ticket_input<T>::held_bytes() const noexcept {
  const std::size_t removed = removed_bytes_.load(std::memory_order_relaxed);
  const std::size_t put = put_bytes_.load(std::memory_order_relaxed);
  return put > removed ? put - removed : 0;
}

// Not inlined, because g++ 12 would warn that the item of an end mark is read uninitialized. An end mark has no item.
template <class T>
[[gnu::noinline]] MILLRACE_RARE void ticket_input<T>::put_mark(sample<T>&& s) {
  put_entry(std::move(s));
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::put_entry(sample<T>&& s) {
  ring_.put(next_, std::move(s));
  if (++next_ == batch_end_) batch_end_ += options_.group;
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::drop(std::uint64_t ticket) {
  std::size_t bytes = 0;
  static_cast<void>(take(ticket, bytes));
  removed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

template <class T>
MILLRACE_INLINE bool ticket_input<T>::count_row(const sample<T>& s) noexcept {
  if (s.ordinal != row_.ordinal || s.epoch != row_.pass) row_.rows_of_ordinal = 0;
  row_.ordinal = s.ordinal;
  row_.pass = s.epoch;
  row_.buffered_tokens = s.held;
  ++row_.rows_of_ordinal;
  ++row_.rows_of_pass;
  return ++row_.rows_of_run > options_.boundaries.skipped_rows;
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::log_batch(bool ends_pass) {
  row_.ends_pass = ends_pass;
  if (options_.boundaries.log) options_.boundaries.log->batch_ends(row_);
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::count_batch() {
  const batch_boundaries& b = options_.boundaries;
  if (b.epoch_batches == 0) return;
  const std::uint64_t batch = (next_ + pads_) / options_.group, step = b.first_step + batch;
  if (step % b.epoch_batches == 0) options_.batches->mark_epoch_start(batch);
  if (step < b.end_step) return;
  complete_ = true;
  finish(nullptr);
}

template <class T>
MILLRACE_RARE std::exception_ptr ticket_input<T>::run_is_over_error() const {
  return exception_of(setup_error("the run is over: its resume point is the end of its last epoch",
                                  "Raise session_options::epochs, which includes the epochs before the resume point"));
}

template <class T>
MILLRACE_INLINE std::exception_ptr ticket_input<T>::nothing_left_error(std::size_t rows,
                                                                       const stage_passages::pass& pass) const {
  return exception_of(too_few_rows_error({.rows = rows, .batch = options_.group}, pass));
}

template <class T>
MILLRACE_INLINE void ticket_input<T>::add_entry(typename sample<T>::kind what, std::exception_ptr error) {
  pending_ = end_entry{what, std::move(error)};
  settle();
}

}}}   // namespace millrace::detail
