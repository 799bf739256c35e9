// The engine's heart: workers claim tickets and run a segment on them. No queue of items, nothing that waits.
//
//   auto p = std::make_shared<dispatcher>(segment, dispatcher::options{.seats = 8, .together = 2, .group = 256});
//   p->attach(executor);
//   p->set_available(n);      // tickets below n have their input      (source, or the segment before)
//   p->set_limit(m);          // tickets below m have room to write to (slots, or the segment after)
//
// A ticket is a position: ticket t is row t % B of batch t / B, whoever works on it, so order never depends on the
// number of workers. Claimable = min(available, limit). Workers sit on seats; when nothing is claimable a worker leaves
// its seat, and whoever moves one of the two counters fills empty seats again. A claim takes `together` tickets (fewer
// only where a group ends), more when they are cheap, and never crosses a multiple of `group` (a batch). Seats can be
// closed and opened meanwhile; who sits on one that is closed ends the claim under way.
//
// Threads: everything may be called from any thread. Lifetime: tasks share the dispatcher and touch the segment only
// while they hold a seat; stop() and join() make sure that none does any more.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/read_meter.hpp>
#include <millrace/measure/worker_times.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/work/executor.hpp>
#include <millrace/work/segment.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// What a dispatcher runs on its tickets.
class dispatcher_work {
 public:
  virtual ~dispatcher_work() = default;
  /// Tickets first .. first + count - 1, on a seat that nobody else has meanwhile.
  virtual void run(std::size_t seat, std::uint64_t first, std::size_t count) noexcept = 0;
};

/// A template only so that including it costs little.
template <class = void>
class basic_dispatcher final : public worker_task,
                               public ticket_gate,
                               public std::enable_shared_from_this<basic_dispatcher<>> {
 public:
  struct options {
    std::size_t seats = 1;
    std::size_t together = 1;   ///< tickets that a worker likes to take at once
    std::size_t group = 1;      ///< a claim never crosses a multiple of this
  };

  basic_dispatcher(dispatcher_work& work, options o) : work_(&work), options_(o), open_(o.seats), seats_(o.seats) {
    most_at_once_ = std::clamp<std::size_t>(o.group / (2 * o.seats), o.together, 32);
    most_at_once_ -= most_at_once_ % o.together;
    const std::uint64_t now = steady_now_ns();
    for (auto& s : seats_) {
      s.at_once = o.together;
      s.times = std::make_unique<worker_times>(now);
    }
  }

  /// Without an executor nothing runs but advance().
  void attach(executor* e) noexcept { executor_ = e; }

  void set_available(std::uint64_t tickets) override {
    if (available_.exchange(tickets) == 0) first_available_.ring();
    kick();
  }
  void set_limit(std::uint64_t tickets) {
    // Several threads may free room at once, and the later call may bring the smaller number.
    std::uint64_t now = limit_.load();
    while (now < tickets && !limit_.compare_exchange_weak(now, tickets)) {
    }
    kick();
  }
  std::uint64_t available() const noexcept override { return available_.load(); }
  /// Until there is a first ticket, whether or not it may be claimed.
  void wait_for_available() {
    first_available_.wait([&] { return available_.load() > 0; });
  }

  /// For waits(): which ticket of its claim a seat is at.
  void at(std::size_t seat, std::uint64_t ticket) noexcept { seats_[seat].times->at(ticket); }

  /// Runs one claim on the calling thread; false if nothing is claimable.
  bool advance() {
    std::uint64_t first;
    const std::size_t count = claim(options_.together, first);
    if (count == 0) return false;
    worker_times& times = *seats_[0].times;
    times.begin(steady_now_ns());
    times.at(first);
    work_->run(0, first, count);
    const std::uint64_t now = steady_now_ns();
    times.worked(now, count, batch_of(first));
    times.leave(now, what_is_missing());
    return true;
  }

  /// So many, the first ones, from now on; at least 1, and no more than there are. Those of own threads stay open.
  void open_seats(std::size_t count) {
    if (!on_workers()) return;
    const std::size_t open = std::clamp<std::size_t>(count, 1, seats_.size());
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t now = steady_now_ns();
      for (std::size_t i = std::min(open, open_.load()); i < std::max(open, open_.load()); ++i)
        if (!seats_[i].taken)
          seats_[i].times->wait_for(now, i < open ? what_is_missing() : worker_times::waits_for::nothing);
      open_.store(open);
      all_taken_.store(false);
    }
    kick();
  }

  void stop() noexcept { stopped_.store(true); }
  /// After stop(): until no seat is taken.
  void join() noexcept {
    std::unique_lock lock(mutex_);
    seat_left_.wait(lock, [&] { return taken_ == 0; });
  }

  /// Nanoseconds that the seats were taken and working, all together.
  std::uint64_t busy_ns() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& s : seats_) sum += s.times->busy_ns();
    return sum;
  }
  stage_figures figures(std::string name, std::uint64_t now_ns) const {
    stage_figures f{.name = std::move(name), .kind = stage_kind::work, .seats = open_.load()};
    f.on_workers = on_workers();
    for (const auto& s : seats_) s.times->add_to(f, now_ns);
    return f;
  }

  /// "1 of 4 at work, the longest for 31.2 s at sample 1580 (batch 6), thread 0x7f21c8d3a6c0; 3 wait for input"
  std::string waits(std::uint64_t now_ns) const {
    std::size_t working = 0, for_input = 0, for_room = 0;
    worker_times::state oldest{};
    for (const auto& s : seats_) {
      const worker_times::state one = s.times->now();
      if (one.works && (working++ == 0 || one.since_ns < oldest.since_ns)) oldest = one;
      for_input += !one.works && one.what == worker_times::waits_for::input;
      for_room += !one.works && one.what == worker_times::waits_for::room;
    }
    std::string text = std::to_string(working) + " of " + std::to_string(open_.load()) + " at work";
    if (working > 0) {
      char thread[24];
      std::snprintf(thread, sizeof thread, "0x%llx", static_cast<unsigned long long>(oldest.thread));
      text += ", the longest for " + detail::seconds_text(now_ns - std::min(now_ns, oldest.since_ns)) + " at sample " +
              std::to_string(oldest.ticket);
      if (options_.group > 1) text += " (batch " + std::to_string(oldest.ticket / options_.group) + ")";
      text += std::string(", thread ") + thread;
    }
    if (for_input > 0) text += "; " + std::to_string(for_input) + " wait for input";
    if (for_room > 0) text += "; " + std::to_string(for_room) + " wait for room";
    return text;
  }
  void add_spans(timeline& t, const std::string& name, std::uint64_t start_ns) const {
    for (std::size_t i = 0; i < seats_.size(); ++i)
      t.add_spans(name + " " + std::to_string(i), name.c_str(), seats_[i].times->spans(), start_ns);
  }

  void run_on_seat(std::size_t index) noexcept override {
    seat& s = seats_[index];
    const std::uint64_t start = steady_now_ns();
    std::uint64_t now = start;
    std::uint64_t first;
    s.times->begin(start);
    while (!stopped_.load() && index < open_.load()) {
      const std::size_t count = claim(s.at_once, first);
      if (count == 0) break;
      s.times->at(first);
      work_->run(index, first, count);
      now = steady_now_ns();
      adapt(s, s.times->worked(now, count, batch_of(first)), count);
      // Other sessions and the user's own TBB work get their turn.
      if (now - start > turn_ns) {
        s.times->end_of_stay();
        if (submit(index)) return;
        s.times->begin(now);
      }
    }
    leave(index, now);
    kick();
  }

 private:
  static constexpr std::uint64_t turn_ns = 5'000'000;
  static constexpr std::uint64_t cheap_ns = 20'000;

  struct alignas(64) seat {
    std::size_t at_once = 1;
    bool taken = false;   // guarded by mutex_
    std::unique_ptr<worker_times> times{};
  };

  bool on_workers() const noexcept { return executor_ && executor_->shared(); }

  std::size_t claim(std::size_t most, std::uint64_t& first) noexcept {
    std::uint64_t head = head_.load();
    for (;;) {
      const std::uint64_t to_border = options_.group - head % options_.group;
      const std::uint64_t count = std::min({static_cast<std::uint64_t>(most), claimable(head), to_border});
      if (count == 0) return 0;
      if (head_.compare_exchange_weak(head, head + count)) {
        first = head;
        return static_cast<std::size_t>(count);
      }
    }
  }

  std::uint64_t batch_of(std::uint64_t ticket) const noexcept {
    return options_.group > 1 ? ticket / options_.group : timeline_span::no_batch;
  }
  /// Why nothing can be claimed.
  worker_times::waits_for what_is_missing() const noexcept {
    return limit_.load() < available_.load() ? worker_times::waits_for::room : worker_times::waits_for::input;
  }

  /// Tickets from `head` on. One that likes company waits for it, unless its group ends: groups are always filled up.
  std::uint64_t claimable(std::uint64_t head) const noexcept {
    const std::uint64_t end = std::min(available_.load(), limit_.load());
    if (head >= end) return 0;
    const std::uint64_t left_in_group = options_.group - head % options_.group;
    if (end - head >= left_in_group) return end - head;
    return (end - head) / options_.together * options_.together;
  }

  /// Cheap tickets are claimed by the dozen, so that claiming costs nothing; dear ones singly, for an even finish.
  void adapt(seat& s, std::uint64_t spent_ns, std::size_t count) const noexcept {
    if (count < s.at_once) return;
    if (spent_ns < cheap_ns && s.at_once * 2 <= most_at_once_) s.at_once *= 2;
    else if (spent_ns > 2 * cheap_ns && s.at_once > options_.together) s.at_once /= 2;
  }

  /// Fills empty seats while there is something to claim.
  void kick() {
    if (!executor_) return;
    while (!stopped_.load()) {
      const std::uint64_t tickets = claimable(head_.load());
      if (tickets == 0 || all_taken_.load()) return;
      std::size_t index;
      {
        const std::lock_guard lock(mutex_);
        // Not more workers than there are claims to make.
        if (taken_ >= (tickets + options_.together - 1) / options_.together && taken_ > 0) return;
        index = 0;
        while (index < open_.load() && seats_[index].taken) ++index;
        if (index == open_.load() || stopped_.load()) return;
        seats_[index].taken = true;
        ++taken_;
        all_taken_.store(taken_ >= open_.load());   // who leaves a closed one looks again
      }
      if (!submit(index)) {
        leave(index, steady_now_ns());
        return;
      }
    }
  }

  bool submit(std::size_t index) noexcept {
    try {
      executor_->submit(this->shared_from_this(), index);
      return true;
    } catch (...) {
      return false;   // out of memory: whoever moves a counter next tries again
    }
  }

  void leave(std::size_t index, std::uint64_t now) noexcept {
    seat& s = seats_[index];
    s.times->end_of_stay();
    {
      const std::lock_guard lock(mutex_);
      s.times->leave(now, index < open_.load() ? what_is_missing() : worker_times::waits_for::nothing);
      s.taken = false;
      --taken_;
      all_taken_.store(false);
    }
    seat_left_.notify_all();
  }

  dispatcher_work* const work_;
  const options options_;
  std::size_t most_at_once_ = 1;
  executor* executor_ = nullptr;

  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> available_{0};
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> open_;   // written under mutex_
  std::atomic<bool> all_taken_{false};
  std::mutex mutex_;
  std::condition_variable seat_left_;
  doorbell first_available_;
  std::size_t taken_ = 0;
  std::vector<seat> seats_;
};
using dispatcher = basic_dispatcher<>;

}}  // namespace millrace
