// A segment (a part of the pipeline) for a stage that buffers samples. The segment runs the stage on one thread,
// strictly in order.
//
//   mr::detail::shuffling_segment_stage<clip> stage(order, max_bytes);
//   mr::detail::serial_segment<clip, decltype(stage)> middle(std::move(stage), {.capacity = 64}, next.entrance());
//
// The stage is stateful_expanding_stage or shuffling_segment_stage (work/segment/serial_stages.hpp). Both have
// push(sample, out) and end_epoch(out). The samples in `out` wait in the segment until the next segment has space.
// Errors and end marks are passed on in order.
//
// The sleeping thread wakes when a quarter of its input buffer is full. If at least one sample is waiting, the thread
// wakes within 2 ms in any case. To wake the thread for each sample would cost more processor time than a cheap stage
// needs.
// Errors: if push() throws, shard, key and stage are added to the exception. Any exception of the stage ends the run.
// Threads: the stage runs on the segment's thread; one producer at a time uses the entrance.
// Lifetime: the next segment must outlive this segment.
#pragma once

#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/sync/start_thread.hpp>
#include <millrace/work/schedule/dispatcher.hpp>
#include <millrace/work/segment/stage_passages.hpp>
#include <millrace/work/segment/ticket_input.hpp>

#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Runs a serial stage on its own thread.
template <class In, class Stage>
class serial_segment final : public pipeline_node, public space_listener, public claimed_ticket_gate {
 public:
  using input = In;
  using output = typename Stage::output;

  struct options {
    std::size_t capacity = 64;          ///< minimum number of samples that the input can store
    bool threaded = true;               ///< if false, advance() does the work
    stage_passage* passage = nullptr;   ///< counts of the stage; null if it never drops samples
  };

  serial_segment(Stage stage, options o, sample_sink<output>& next)
      : stage_(std::move(stage)), options_(o), next_(&next), input_({.capacity = o.capacity}) {
    input_.connect(*this);
    next.set_listener(this);
    waiting_.reserve(1);   // so that an error can be stored even if memory is exhausted
  }

  /// Returns the sink into which the producer puts samples.
  sample_sink<input>& entrance() noexcept { return input_; }

  void add_to(flow_statistics& f, std::uint64_t now_ns) const override {
    stage_statistics s{.name = Stage::name, .kind = stage_kind::work};
    // The thread is busy whenever it does not sleep. Without a thread these times are not measured.
    s.starved_ns = starved_ns_.load(std::memory_order_acquire);
    s.blocked_ns = blocked_ns_.load(std::memory_order_acquire);
    if (const std::uint64_t since = asleep_since_ns_.load(std::memory_order_acquire); since != 0 && since < now_ns)
      (asleep_for_space_ ? s.blocked_ns : s.starved_ns) += now_ns - since;
    if (options_.threaded && started_ns_ != 0)
      s.busy_ns = now_ns - started_ns_ - std::min(now_ns - started_ns_, s.starved_ns + s.blocked_ns);
    s.items = removed_.load(std::memory_order_relaxed);
    s.service_ns = service_ns_.snapshot();
    if (const std::uint64_t out = outputs_.load(std::memory_order_relaxed); !Stage::one_for_one && out > 0)
      s.items_per_sample = static_cast<double>(s.items) / static_cast<double>(out);
    f.stages.push_back(std::move(s));
  }
  std::string waits(std::uint64_t now_ns) const override {
    const std::uint64_t since = asleep_since_ns_.load(std::memory_order_acquire);
    const std::uint64_t removed = removed_.load();
    const bool in_progress = removed > 0 && (since == 0 || asleep_for_space_);   // if false, it waits for a sample
    std::string text = std::string(Stage::name) + " (one thread): at sample " + std::to_string(removed - in_progress);
    if (since != 0)
      text += (asleep_for_space_ ? ", waits for space since " : ", waits for input since ") +
              seconds_text(now_ns - std::min(now_ns, since));
    return text;
  }
  void start() override {
    started_ns_ = steady_now_ns();
    if (options_.threaded) thread_ = start_thread([this] { work(); });
  }

  /// Passes on the waiting samples, or processes one sample. Returns false if neither is possible.
  bool advance() override {
    if (at_ < waiting_.size() || end_pending_) {
      const bool moved = pass_on();
      next_->publish();
      return moved;
    }
    waiting_.clear();
    at_ = 0;
    if (ended_ || nothing_available()) return false;
    const std::uint64_t ticket = removed_.load();
    std::size_t bytes = 0;
    sample<input> s = input_.take(ticket, bytes);
    removed_.store(ticket + 1);
    input_.freed(1, bytes);
    const bool timed = ticket % 16 == 0;
    const std::uint64_t start = timed ? steady_now_ns() : 0;
    run_stage(std::move(s));
    if (timed) service_ns_.record(steady_now_ns() - start);
    outputs_.store(outputs_.load(std::memory_order_relaxed) + waiting_.size(), std::memory_order_relaxed);
    return true;
  }

  void set_available(std::uint64_t tickets) override {
    available_.store(tickets);
    if (tickets >= wake_at_.load()) bell_.ring();
  }
  std::uint64_t available() const noexcept override { return available_.load(); }

  void space_freed() noexcept override { bell_.ring(); }
  void stop() noexcept override {
    stopped_.store(true);
    bell_.ring();
  }
  void join() noexcept override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  bool nothing_available() const noexcept { return removed_.load() >= available_.load(); }

  void run_stage(sample<input> s) noexcept {
    using kind = typename sample<input>::kind;
    try {
      if (s.what == kind::item) {
        s.keep_origin();
        const record origin = s.origin;
        try {
          stage_.push(std::move(s), waiting_);
          if (options_.passage) options_.passage->count_input();
          count_items();
        } catch (...) {
          std::rethrow_exception(error_located_by([&] {
            error_location at = origin.where();
            at.stage = Stage::name;
            return at;
          }));
        }
      } else if (s.what == kind::epoch_end) {
        stage_.end_epoch(waiting_);
        count_items();
        if (options_.passage) options_.passage->end_pass();
        waiting_.emplace_back().what = sample<output>::kind::epoch_end;
      } else if (s.what == kind::pass_end) {
        if (options_.passage) options_.passage->end_pass();
        waiting_.emplace_back().what = sample<output>::kind::pass_end;
      } else {
        end_with(s.item.error());
      }
    } catch (...) {
      end_with(std::current_exception());
    }
  }

  /// Counts the outputs of one call of the stage.
  void count_items() noexcept {
    if (!options_.passage) return;
    for (const sample<output>& s : waiting_)
      options_.passage->count_outputs(s.what == sample<output>::kind::item ? 1 : 0);
  }

  /// Adds the error after the outputs. If memory is exhausted, the error replaces the last output.
  void end_with(std::exception_ptr error) noexcept {
    ended_ = true;
    try {
      waiting_.emplace_back();
    } catch (...) {
      waiting_.back() = {};
    }
    waiting_.back().what = sample<output>::kind::failed;
    waiting_.back().item.set_error(std::move(error));
  }

  /// Calls advance(). Ends the run if memory is exhausted while samples are passed on.
  bool advance_or_end() noexcept {
    try {
      return advance();
    } catch (...) {
      next_->finish(error_located_by([] { return error_location{.stage = Stage::name}; }));
      ended_ = true;
      waiting_.clear();
      at_ = 0;
      end_pending_ = true;
    }
    return true;
  }

  bool pass_on() {
    bool moved = false;
    for (; at_ < waiting_.size() && next_->can_accept(); ++at_, moved = true) {
      sample<output>& s = waiting_[at_];
      using kind = typename sample<output>::kind;
      if (s.what == kind::item) next_->put(std::move(s));
      else if (s.what == kind::batch_end) next_->end_batch();
      else if (s.what == kind::epoch_end) next_->end_epoch();
      else if (s.what == kind::pass_end) next_->end_pass();
      else next_->finish(s.item.error());
      end_pending_ = s.what != kind::item;
    }
    if (at_ == waiting_.size() && end_pending_ && next_->settle()) {
      end_pending_ = false;
      moved = true;
    }
    return moved;
  }

  /// Returns whether the next segment has space again. A consumer frees an entry of that segment's ring, and then
  /// changes the counter that backlog() reads. Therefore this function must call backlog() before it inspects the ring.
  bool can_accept() {
    static_cast<void>(next_->backlog());
    return at_ < waiting_.size() ? next_->can_accept() : next_->settle();
  }

  void work() {
    name_worker_thread("millrace-serial");
    while (!stopped_.load()) {
      if (advance_or_end()) continue;
      const bool for_space = at_ < waiting_.size() || end_pending_;
      const std::uint64_t since = steady_now_ns();
      asleep_for_space_ = for_space;
      asleep_since_ns_.store(since, std::memory_order_release);
      if (for_space) bell_.wait([&] { return stopped_.load() || can_accept(); });
      else wait_for_input();
      asleep_since_ns_.store(0, std::memory_order_release);
      auto& slept = for_space ? blocked_ns_ : starved_ns_;
      slept.store(slept.load(std::memory_order_relaxed) + steady_now_ns() - since, std::memory_order_release);
    }
  }

  void wait_for_input() {
    const auto woken = [&] { return stopped_.load() || (!ended_ && available_.load() >= wake_at_.load()); };
    wake_at_.store(removed_.load() + std::max<std::size_t>(1, options_.capacity / 4));
    bell_.wait_at_most(gather_ns, woken);
    if (!ended_ && !nothing_available()) return;
    wake_at_.store(removed_.load() + 1);
    bell_.wait(woken);
  }

  static constexpr std::uint64_t gather_ns = 2'000'000;

  Stage stage_;
  const options options_;
  sample_sink<output>* const next_;
  ticket_input<input> input_;
  std::atomic<std::uint64_t> available_{0}, removed_{0};
  std::atomic<std::uint64_t> wake_at_{0};   // value of available_ that wakes the thread
  doorbell bell_;
  std::atomic<bool> stopped_{false};
  std::uint64_t started_ns_ = 0;
  std::atomic<std::uint64_t> asleep_since_ns_{0}, starved_ns_{0}, blocked_ns_{0}, outputs_{0};
  std::atomic<bool> asleep_for_space_{false};
  own_histogram service_ns_;
  std::thread thread_;

  // Only the stage's thread uses the following members.
  std::vector<sample<output>> waiting_;
  std::size_t at_ = 0;
  bool end_pending_ = false;   // an end mark may still wait for space in the next segment
  bool ended_ = false;
};

}}}   // namespace millrace::detail
