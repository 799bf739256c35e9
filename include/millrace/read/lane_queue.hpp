// The end of a lane: a short queue of its next samples, between the lane's reorder_buffer and the merger of the lanes.
//
//   lane_queue<record> ready(8);
//   reorder_buffer<shards_source> shards(order, options, ready);   // puts samples in; ready.has_room() bounds it
//   if (!ready.empty()) next.put(ready.pop());                     // the merger; ready.error() once nothing follows
//   if (ready.at_border()) ...  ready.begin_pass();                // no sample of the next pass enters before that
//
// Threads: one at a time, under the lock of the read stage. So no listener has to be told of free space.
#pragma once

#include <millrace/sync/fifo.hpp>
#include <millrace/work/segment.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Holds the next few samples of one lane, up to the end of its current pass.
template <class T>
class lane_queue final : public sample_sink<T> {
 public:
  explicit lane_queue(std::size_t capacity) : capacity_(capacity) {}

  /// Returns whether no sample is held.
  bool empty() const noexcept { return samples_.empty(); }
  /// Removes the first sample and returns it. The queue must not be empty.
  sample<T> pop() {
    sample<T> s = samples_.pop();
    bytes_ -= held_bytes_of(*s.item);
    return s;
  }
  /// Returns whether the lane's pass is over and all its samples were taken.
  bool at_border() const noexcept { return border_ && samples_.empty(); }
  /// Lets the samples of the next pass enter.
  void begin_pass() noexcept { border_ = false; }
  /// Returns the error behind the held samples; null if there is none.
  const std::exception_ptr& error() const noexcept { return error_; }

  bool has_room() override { return !border_ && samples_.size() < capacity_; }
  void put(sample<T>&& s) override {
    bytes_ += held_bytes_of(*s.item);
    samples_.push(std::move(s));
    ++put_;
  }
  void end_epoch() override { border_ = true; }
  void finish(std::exception_ptr error) override { error_ = std::move(error); }
  void publish() override {}
  std::uint64_t backlog() const noexcept override { return samples_.size(); }
  std::size_t held_bytes() const noexcept override { return bytes_; }
  void set_listener(space_listener*) override {}
  /// Returns the number of samples of the lane that were put so far.
  std::uint64_t next_row() const noexcept override { return put_; }

 private:
  const std::size_t capacity_;
  fifo<sample<T>> samples_;
  std::size_t bytes_ = 0;
  std::uint64_t put_ = 0;
  bool border_ = false;   // the pass ends behind the held samples
  std::exception_ptr error_;
};

}}}  // namespace millrace::detail
