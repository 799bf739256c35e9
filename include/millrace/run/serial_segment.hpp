// A segment that runs on one thread of its own, strictly in order: for stages that hold something back.
//
//   serial_segment<clip, stateful_expanding<clip, windows_of>> middle(stage, {.capacity = 64}, next.entrance());
//
// The stage is one of stateful_expanding and shuffling (run/serial_stages.hpp): push(sample, out) and end_epoch(out),
// where `out` takes samples that wait here until the next segment has room. Errors and ends travel in order.
#pragma once

#include <millrace/run/ticket_input.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/sync/trace_range.hpp>

#include <thread>

namespace millrace::inline MILLRACE_ABI {

template <class In, class Stage>
class serial_segment final : public component, public room_listener, public ticket_gate {
 public:
  using input = In;
  using output = typename Stage::output;

  struct options {
    std::size_t capacity = 64;
    bool threaded = true;   ///< false: work is done by advance()
  };

  serial_segment(Stage stage, options o, sample_sink<output>& next)
      : stage_(std::move(stage)), options_(o), next_(&next), input_({.capacity = o.capacity}) {
    input_.connect(*this);
    next.set_listener(this);
  }

  sample_sink<input>& entrance() noexcept { return input_; }

  void start() override {
    if (options_.threaded) thread_ = std::thread([this] { work(); });
  }

  /// Passes on what is waiting, else takes one sample.
  bool advance() override {
    if (at_ < waiting_.size()) {
      const bool moved = pass_on();
      next_->publish();
      return moved;
    }
    waiting_.clear();
    at_ = 0;
    if (ended_ || nothing_available()) return false;
    const std::uint64_t ticket = taken_.load();
    std::size_t bytes = 0;
    sample<input> s = input_.take(ticket, bytes);
    taken_.store(ticket + 1);
    input_.freed(1, bytes);
    run_stage(std::move(s));
    return true;
  }

  void set_available(std::uint64_t tickets) override {
    available_.store(tickets);
    bell_.ring();
  }
  std::uint64_t available() const noexcept override { return available_.load(); }

  void room_freed() noexcept override { bell_.ring(); }
  void stop() noexcept override {
    stopped_.store(true);
    bell_.ring();
  }
  void join() noexcept override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  bool nothing_available() const noexcept { return taken_.load() >= available_.load(); }

  void run_stage(sample<input> s) noexcept {
    using kind = typename sample<input>::kind;
    try {
      if (s.what == kind::item) {
        s.keep_origin();
        const record origin = s.origin;
        try {
          stage_.push(std::move(s), waiting_);
        } catch (...) {
          place at = origin.where();
          at.stage = Stage::name;
          std::rethrow_exception(located_exception(at));
        }
      } else if (s.what == kind::epoch_end) {
        stage_.end_epoch(waiting_);
        waiting_.emplace_back().what = sample<output>::kind::epoch_end;
      } else {
        auto& end = waiting_.emplace_back();
        end.what = sample<output>::kind::failed;
        end.error = s.error;
        ended_ = true;
      }
    } catch (...) {
      auto& end = waiting_.emplace_back();
      end.what = sample<output>::kind::failed;
      end.error = std::current_exception();
      ended_ = true;
    }
  }

  bool pass_on() {
    bool moved = false;
    for (; at_ < waiting_.size() && next_->has_room(); ++at_, moved = true) {
      sample<output>& s = waiting_[at_];
      if (s.what == sample<output>::kind::item) next_->put(std::move(s));
      else if (s.what == sample<output>::kind::epoch_end) next_->end_epoch();
      else next_->finish(s.error);
    }
    return moved;
  }

  void work() {
    detail::name_worker_thread("millrace-serial");
    while (!stopped_.load()) {
      if (advance()) continue;
      bell_.wait([&] {
        return stopped_.load() || (at_ < waiting_.size() ? next_->has_room() : !ended_ && !nothing_available());
      });
    }
  }

  Stage stage_;
  const options options_;
  sample_sink<output>* const next_;
  ticket_input<input> input_;
  std::atomic<std::uint64_t> available_{0}, taken_{0};
  doorbell bell_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;

  // Of the stage's thread only.
  std::vector<sample<output>> waiting_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

}  // namespace millrace::inline MILLRACE_ABI
