// Definitions for row_storage.hpp. The class row_requests requests the rows of one session.
//
// A thread claims tickets that the workers leave (dispatcher::claim_surplus()), and requests their rows. Each row of a
// request leaves the state MISSING once, by an atomic exchange: to STORED, or to RETURNED, if the workers compute it,
// because the storage drops the request, the size is wrong, or the answer is late (return_overdue()). A row with a
// wrong checksum stays MISSING. The sample of a ticket stays in the input until the row is stored: the workers may need
// it, and it has the digest, the key and the epoch of the row.
#pragma once

#include <millrace/adapt/feeders/row_storage.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/start_thread.hpp>
#include <millrace/work/segment/row_feed.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Closed at the end of a session, because row_slots may outlive it.
struct row_gate {
  std::shared_mutex mutex;
  row_requests* requests = nullptr;   // null: the session has ended
};

/// Rows that are requested together.
struct row_request {
  enum class state : std::uint8_t { missing, stored, returned };

  row_request(std::shared_ptr<row_gate> g, std::size_t most) : gate(std::move(g)), states(most) {}

  const std::shared_ptr<row_gate> gate;
  std::vector<std::atomic<state>> states;
  std::uint64_t first = 0, sent_ns = 0;   // the ticket of the first row
  std::size_t count = 0;
  std::atomic<std::size_t> missing{0};
};

/// Requests the rows of one session.
class row_requests final : public row_feed, private space_listener {
 public:
  row_requests(std::shared_ptr<row_storage> storage, const row_feed_options& of);
  ~row_requests() override {
    stop();
    join();
  }

  /// Opens the storage and starts the thread. Throws setup_error if the rows of the flow cannot be computed elsewhere,
  /// and the errors of row_storage::open().
  void open(std::string order, std::string columns) override;

  void count_into(event_counts& counts) noexcept override { counts_ = &counts; }
  std::string waits(std::uint64_t now_ns) const override;
  void start() override {}
  bool advance() override { return false; }
  void stop() noexcept override;
  void join() noexcept override;

  std::uint64_t changes() const noexcept override { return changes_.load(); }
  bool may_change(std::uint64_t before) const noexcept override {
    return outstanding_.load() > 0 || changes_.load() != before;
  }

 private:
  friend row_slots;
  static constexpr std::uint64_t tick_ns = 5'000'000, min_patience_ns = 20'000'000, max_patience_ns = 10'000'000'000,
                                 max_pause_ns = 1'000'000'000;

  void space_freed() noexcept override;
  void work() noexcept;
  void send() noexcept;
  void send_one(std::size_t most);
  void return_overdue() noexcept;
  bool store(row_request& of, std::size_t row, std::span<const std::byte> bytes) noexcept;
  /// Returns the missing rows of a request to the workers.
  void return_missing(row_request& of) noexcept;
  /// Subtracts stored or returned rows from the missing ones. Returns whether they were the last ones of the request.
  bool done(row_request& of, std::size_t rows) noexcept;
  void add_answer(const row_request& of) noexcept;
  void change() noexcept;
  /// Subtracts rows that have been stored or returned, and notifies the trainer.
  void subtract_outstanding(std::size_t rows) noexcept;
  /// Pauses the requests, and reports the first error.
  void pause(const std::exception& why) noexcept;
  void count(const char* what, std::uint64_t times = 1) noexcept {
    if (counts_) counts_->count(what, times);
  }

  const std::shared_ptr<row_storage> storage_;
  const row_feed_options options_;
  row_target* const rows_;
  dispatcher& tickets_;
  const std::shared_ptr<row_gate> gate_;
  event_counts* counts_ = nullptr;
  std::size_t most_ = 0;   // rows of a request
  std::atomic<std::uint64_t> changes_{0}, calls_{0}, slowest_ns_{0};
  std::atomic<std::size_t> outstanding_{0};   // rows that are claimed and missing
  std::atomic<bool> stopped_{false};
  std::uint64_t retry_at_ns_ = 0, pause_ns_ = 0;   // used by the thread
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<row_request>> requests_;   // guarded by mutex_
  doorbell bell_;
  std::thread thread_;
};

MILLRACE_INLINE row_requests::row_requests(std::shared_ptr<row_storage> storage, const row_feed_options& of)
    : storage_(std::move(storage)),
      options_(of),
      rows_(of.last->rows()),
      tickets_(of.last->tickets()),
      gate_(std::make_shared<row_gate>()) {
  gate_->requests = this;
}

MILLRACE_INLINE void row_requests::open(std::string order, std::string columns) {
  if (order.empty())
    throw setup_error("session_options::rows needs rows that are known by their position: got an order without an "
                      "index, expected plain tars, or a flow with one row for each sample",
                      "Omit session_options::rows, or use a source with an index");
  if (!rows_)
    throw setup_error("session_options::rows needs rows that can be computed alone: got mix_rows(), expected a flow "
                      "that does not combine rows",
                      "Omit session_options::rows, or mix_rows()");
  const row_run run{.order = std::move(order), .columns = std::move(columns), .max_row_bytes = rows_->max_row_bytes()};
  most_ = max_request_rows(run.max_row_bytes);
  storage_->open(run);
  tickets_.share_with(*this, options_.batches->count() * options_.numbers.rows);
  thread_ = start_thread([this] {
    name_worker_thread("millrace-rows");
    work();
  });
}

MILLRACE_INLINE std::string row_requests::waits(std::uint64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  std::size_t missing = 0;
  std::uint64_t since_ns = now_ns;
  for (const auto& r : requests_)
    if (const std::size_t rows = r->missing.load(); rows > 0) {
      missing += rows;
      since_ns = std::min(since_ns, r->sent_ns);
    }
  if (missing == 0) return "row storage: no row requested";
  return "row storage: " + std::to_string(missing) + " rows requested, the oldest for " +
         seconds_text(now_ns - since_ns);
}

MILLRACE_INLINE void row_requests::stop() noexcept {
  stopped_.store(true);
  bell_.ring();
  change();
}

MILLRACE_INLINE void row_requests::join() noexcept {
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(gate_->mutex);   // waits for calls of put()
  gate_->requests = nullptr;
}

MILLRACE_INLINE void row_requests::space_freed() noexcept {
  calls_.fetch_add(1);
  bell_.ring();
}

MILLRACE_INLINE void row_requests::change() noexcept {
  changes_.fetch_add(1);
  if (options_.wakes_trainer) options_.batches->bell().ring();
}

MILLRACE_INLINE void row_requests::subtract_outstanding(std::size_t rows) noexcept {
  changes_.fetch_add(1);   // first: otherwise may_change() could return false although rows were just stored
  outstanding_.fetch_sub(rows);
  change();
}

MILLRACE_INLINE void row_requests::work() noexcept {
  while (!stopped_.load()) {
    const std::uint64_t calls = calls_.load();
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(requests_, [](const auto& r) { return r->missing.load() == 0; });
    }
    return_overdue();
    send();
    bell_.wait_at_most(tick_ns, [&] { return stopped_.load() || calls_.load() != calls; });
  }
}

MILLRACE_INLINE void row_requests::send() noexcept {
  if (pause_ns_ > 0 && steady_now_ns() < retry_at_ns_) return;
  try {
    while (!stopped_.load()) {
      const std::size_t room = std::min(storage_->free_rows(), most_);
      if (room == 0 || !tickets_.has_surplus()) return;
      send_one(room);
      pause_ns_ = 0;
    }
  } catch (const std::exception& e) {
    pause(e);
  } catch (...) {
    pause(std::bad_exception());
  }
}

MILLRACE_INLINE void row_requests::pause(const std::exception& why) noexcept {
  pause_ns_ = std::clamp<std::uint64_t>(2 * pause_ns_, 1'000'000, max_pause_ns);
  retry_at_ns_ = steady_now_ns() + pause_ns_;
  count("failed requests for rows");
  const auto* const described = dynamic_cast<const error*>(&why);
  try {
    if (counts_)   // posts one notice of this kind
      counts_->post({.kind = notice_kind::rows,
                     .severity = notice_severity::warning,
                     .text = "the row storage failed: " +
                             (described ? described->message() + ". " + described->hint() : why.what()) +
                             ". The workers compute its rows. Requests are repeated without further notices"});
  } catch (const std::bad_alloc&) {   // the next failure is reported
  }
}

/// Allocates before it claims, because a claim must not be lost.
MILLRACE_INLINE void row_requests::send_one(std::size_t most) {
  auto request = std::make_shared<row_request>(gate_, most);
  row_request& r = *request;
  std::unique_lock lock(mutex_);
  requests_.push_back(request);
  outstanding_.fetch_add(most);
  std::size_t claimed = tickets_.claim_surplus(most, rows_->first_ticket(), r.first);
  while (r.count < claimed && rows_->has_sample(r.first + r.count)) ++r.count;
  if (r.count < claimed) tickets_.give_back(r.first + r.count, claimed - r.count);
  r.missing.store(r.count);
  r.sent_ns = steady_now_ns();
  subtract_outstanding(most - r.count);
  lock.unlock();
  if (r.count == 0) return;
  const batch_numbers& numbers = options_.numbers;
  const auto row = static_cast<std::size_t>(r.first % numbers.rows);
  const batch_number batch = numbers.of(r.first / numbers.rows);
  const row_range range{
      .epoch = batch.epoch, .first = numbers.position(batch, row), .count = r.count, .step = numbers.mine.size};
  count("rows requested from the row storage", r.count);
  storage_->read_rows(range, row_slots(std::move(request)));
}

MILLRACE_INLINE void row_requests::return_overdue() noexcept {
  if (outstanding_.load() == 0 || tickets_.has_claimable()) return;
  const std::uint64_t now = steady_now_ns();
  const std::uint64_t patience = std::clamp(4 * slowest_ns_.load(), min_patience_ns, max_patience_ns);
  const std::lock_guard lock(mutex_);
  for (const auto& r : requests_)
    if (r->missing.load() > 0 && now - r->sent_ns > patience) return_missing(*r);
}

MILLRACE_INLINE bool row_requests::store(row_request& of, std::size_t row, std::span<const std::byte> bytes) noexcept {
  using state = row_request::state;
  auto before = state::missing;
  if (!of.states[row].compare_exchange_strong(before, state::stored)) {
    count("late or repeated rows from the row storage");
    if (before == state::returned) add_answer(of);
    return false;
  }
  const std::uint64_t ticket = of.first + row;
  const bool stored = rows_->store_row(ticket, bytes);
  if (stored) {
    count("rows from the row storage");
  } else {
    of.states[row].store(state::returned);
    count("rows from the row storage of a wrong size");
    tickets_.give_back(ticket, 1);
  }
  if (done(of, 1) && stored) add_answer(of);
  return stored;
}

MILLRACE_INLINE void row_requests::return_missing(row_request& of) noexcept {
  using state = row_request::state;
  std::size_t returned = 0;
  for (std::size_t i = 0; i < of.count; ++i) {
    auto before = state::missing;
    if (!of.states[i].compare_exchange_strong(before, state::returned)) continue;
    tickets_.give_back(of.first + i, 1);
    ++returned;
  }
  if (returned == 0) return;
  count("rows that the workers computed instead of the row storage", returned);
  done(of, returned);
}

MILLRACE_INLINE bool row_requests::done(row_request& of, std::size_t rows) noexcept {
  const bool last = of.missing.fetch_sub(rows) == rows;
  if (last) space_freed();   // the storage may have room for another request
  subtract_outstanding(rows);
  return last;
}

/// A moving maximum: a single slow answer is forgotten after about 20 requests.
MILLRACE_INLINE void row_requests::add_answer(const row_request& of) noexcept {
  const std::uint64_t age = steady_now_ns() - of.sent_ns, slowest = slowest_ns_.load();
  slowest_ns_.store(std::max(age, slowest - slowest / 16));
}

}   // namespace detail

MILLRACE_INLINE row_slots::~row_slots() {
  if (!request_) return;
  const std::shared_lock lock(request_->gate->mutex);
  if (auto* const session = request_->gate->requests) session->return_missing(*request_);
}

MILLRACE_INLINE bool row_slots::is_needed() const noexcept { return request_->missing.load() > 0; }

MILLRACE_INLINE bool row_slots::put(std::size_t row, std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  detail::row_request& r = *request_;
  if (row >= r.count) return false;
  const bool correct = r.states[row].load() != detail::row_request::state::missing || crc32c(bytes) == crc;
  const std::shared_lock lock(r.gate->mutex);   // after the checksum
  detail::row_requests* const session = r.gate->requests;
  if (!session) return false;
  if (correct) return session->store(r, row, bytes);
  session->count("rows from the row storage with a wrong checksum");
  return false;
}

MILLRACE_INLINE std::unique_ptr<detail::row_feed> row_storage::new_feed(const detail::row_feed_options& of,
                                                                        std::shared_ptr<row_provider> self) {
  return std::make_unique<detail::row_requests>(std::static_pointer_cast<row_storage>(std::move(self)), of);
}

}}   // namespace millrace
