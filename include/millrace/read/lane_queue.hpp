// The end of a lane: the few samples whose turn comes next, between the lane's reorder_buffer and whoever merges the
// lanes.
//
//   lane_queue<record> ready(8);
//   reorder_buffer<shards_source> parts(plan, options, ready);     // gives; ready.has_room() bounds it
//   if (!ready.empty()) next.put(ready.pop());                 // the merger; ready.error() once nothing follows
//   if (ready.at_border()) ...  ready.begin_pass();            // nothing of the next pass comes in before that
//
// Threads: one at a time, under the intake's lock, so nobody has to be told of room.
#pragma once

#include <millrace/sync/fifo.hpp>
#include <millrace/work/segment.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

template <class T>
class lane_queue final : public sample_sink<T> {
 public:
  explicit lane_queue(std::size_t capacity) : capacity_(capacity) {}

  bool empty() const noexcept { return samples_.empty(); }
  sample<T> pop() {
    sample<T> s = samples_.pop();
    bytes_ -= held_bytes_of(*s.item);
    return s;
  }
  /// Whether the lane's pass is over and all of it was taken.
  bool at_border() const noexcept { return border_ && samples_.empty(); }
  void begin_pass() noexcept { border_ = false; }
  /// Why nothing follows what is held; null while something may.
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
  /// Among the samples of the lane.
  std::uint64_t next_row() const noexcept override { return put_; }

 private:
  const std::size_t capacity_;
  fifo<sample<T>> samples_;
  std::size_t bytes_ = 0;
  std::uint64_t put_ = 0;
  bool border_ = false;   // behind what is held
  std::exception_ptr error_;
};

}}  // namespace millrace
