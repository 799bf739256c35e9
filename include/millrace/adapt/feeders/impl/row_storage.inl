// Definitions for row_storage.hpp. The class row_requests requests the rows of one session.
//
// A thread claims tickets that the workers leave (dispatcher::claim_surplus()), and requests their rows. Each row of a
// request is missing at first. An atomic exchange changes its state to `stored`, or to `returned` if the workers must
// compute the row. Rows are returned if the storage drops the request, or if the answer is late (return_overdue()). A
// row with a wrong size or checksum remains missing. The sample of a ticket remains in the input until the row is
// stored. The workers may need the sample, and it has the digest, the key and the epoch of the row.
#pragma once

#include <millrace/adapt/feeders/row_storage.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/start_thread.hpp>
#include <millrace/work/segment/final_segment.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Connects row_slots with their session. The session clears `requests` when it ends, because row_slots
/// may outlive it.
struct feeder_row_gate {
  std::shared_mutex mutex;
  row_requests* requests = nullptr;   // null: the session has ended
};

/// Rows that are requested together.
struct row_request {
  enum class state : std::uint8_t { missing, stored, returned };

  row_request(std::shared_ptr<feeder_row_gate> g, std::size_t most) : gate(std::move(g)), states(most), missing(most) {}

  const std::shared_ptr<feeder_row_gate> gate;
  std::vector<std::atomic<state>> states;
  std::uint64_t first = 0, sent_ns = 0;   // ticket of the first row; time of the request
  std::size_t count = 0;
  std::atomic<std::size_t> missing;
};

/// Requests the rows of one session.
class row_requests final : public row_feed, private space_listener {
 public:
  row_requests(std::shared_ptr<row_storage> storage, const row_feed_options& of)
      : storage_(std::move(storage)), options_(of), rows_(of.last->rows()), tickets_(of.last->tickets()) {
    gate_->requests = this;
  }
  ~row_requests() override {
    stop();
    join();
  }

  /// Opens the storage and starts the thread. Throws setup_error if the rows of the flow cannot be computed elsewhere,
  /// and the errors of row_storage::open().
  void open(std::string order, std::string columns) override {
    if (order.empty())
      throw setup_error("session_options::rows needs an exact order: got a streamed order, "
                        "expected plain tars or another source with an index, and one row for each sample",
                        "Omit session_options::rows, or use a source with an index");
    if (!rows_)
      throw setup_error("session_options::rows needs rows that do not depend on each other: got mix_rows(), expected "
                        "a flow that does not combine rows",
                        "Omit session_options::rows or the stage mix_rows()");
    const std::size_t max_row_bytes = rows_->max_row_bytes();
    most_ = max_request_rows(max_row_bytes);
    storage_->open({.order = std::move(order), .columns = std::move(columns), .max_row_bytes = max_row_bytes});
    tickets_.share_with(*this, options_.batches->count() * options_.numbers.rows);
    thread_ = start_thread([this] {
      name_worker_thread("millrace-rows");
      work();
    });
  }

  void count_into(event_counts& counts) noexcept override { counts_ = &counts; }
  std::string waits(std::uint64_t) const override {
    return "row storage: " + std::to_string(outstanding_.load()) + " rows requested";
  }
  void start() override {}
  bool advance() override { return false; }
  void stop() noexcept override {
    stopped_.store(true);
    bell_.ring();
    change();
  }
  void join() noexcept override {
    if (thread_.joinable()) thread_.join();
    const std::lock_guard lock(gate_->mutex);   // waits for calls of put()
    gate_->requests = nullptr;
  }
  std::uint64_t changes() const noexcept override { return changes_.load(); }
  bool may_change(std::uint64_t before) const noexcept override {
    return outstanding_.load() > 0 || changes_.load() != before;
  }

 private:
  friend row_slots;
  using state = row_request::state;
  static constexpr std::uint64_t tick_ns = 5'000'000, min_patience_ns = 20'000'000, max_patience_ns = 10'000'000'000,
                                 max_pause_ns = 1'000'000'000;

  void space_freed() noexcept override {
    calls_.fetch_add(1);
    bell_.ring();
  }
  void change() noexcept {
    changes_.fetch_add(1);
    if (options_.wakes_trainer) options_.batches->bell().ring();
  }
  void count(const char* what, std::uint64_t times = 1) noexcept {
    if (counts_) counts_->count(what, times);
  }

  void work() noexcept {
    while (!stopped_.load()) {
      const std::uint64_t calls = calls_.load();
      std::erase_if(requests_, [](const auto& r) { return r->missing.load() == 0; });
      return_overdue();
      send();
      bell_.wait_at_most(tick_ns, [&] { return stopped_.load() || calls_.load() != calls; });
    }
  }
  void send() noexcept {
    if (steady_now_ns() < retry_at_ns_) return;
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
  /// Pauses the requests, and reports the first error.
  void pause(const std::exception& why) noexcept {
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
                               ". The workers of this session compute the rows until the storage answers again. "
                               "Further failures cause no notice"});
    } catch (const std::bad_alloc&) {   // the next failure is reported
    }
  }
  /// Allocates before it claims, because a claim must not be lost.
  void send_one(std::size_t most) {
    auto request = std::make_shared<row_request>(gate_, most);
    row_request& r = *request;
    requests_.push_back(request);
    outstanding_.fetch_add(most);
    const std::size_t claimed = tickets_.claim_surplus(most, rows_->first_ticket(), r.first);
    while (r.count < claimed && rows_->has_sample(r.first + r.count)) ++r.count;
    if (r.count < claimed) tickets_.give_back(r.first + r.count, claimed - r.count);
    r.sent_ns = steady_now_ns();
    done(r, most - r.count);
    if (r.count == 0) return;
    const batch_numbers& numbers = options_.numbers;
    const auto row = static_cast<std::size_t>(r.first % numbers.rows);
    const batch_number batch = numbers.of(r.first / numbers.rows);
    const row_range range{
        .epoch = batch.epoch, .first = numbers.position(batch, row), .count = r.count, .step = numbers.mine.size};
    count("rows requested from the row storage", r.count);
    storage_->read_rows(range, row_slots(std::move(request)));
  }

  void return_overdue() noexcept {
    if (outstanding_.load() == 0 || tickets_.has_claimable()) return;
    const std::uint64_t patience_ns = std::clamp(4 * slowest_ns_.load(), min_patience_ns, max_patience_ns);
    for (const auto& r : requests_)
      if (r->missing.load() > 0 && steady_now_ns() - r->sent_ns > patience_ns) return_missing(*r);
  }
  /// Returns the missing rows of a request to the workers.
  void return_missing(row_request& of) noexcept {
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
  bool store(row_request& of, std::size_t row, std::span<const std::byte> bytes) noexcept {
    auto before = state::missing;
    const bool is_first = of.states[row].compare_exchange_strong(before, state::stored);
    const bool is_stored = is_first && rows_->store_row(of.first + row, bytes);
    if (is_first && !is_stored) of.states[row].store(state::missing);
    count(is_stored  ? "rows from the row storage"
          : is_first ? "rows from the row storage of a wrong size"
                     : "late or repeated rows from the row storage");
    // A moving maximum: a single slow answer is forgotten after about 20 requests.
    if ((is_stored && done(of, 1)) || before == state::returned)
      slowest_ns_.store(std::max(steady_now_ns() - of.sent_ns, slowest_ns_.load() - slowest_ns_.load() / 16));
    return is_stored;
  }
  /// Subtracts rows that have been stored or returned, and notifies the trainer. Returns whether they were the last
  /// ones of their request.
  bool done(row_request& of, std::size_t rows) noexcept {
    changes_.fetch_add(1);   // first: otherwise may_change() could return false although rows were just stored
    const bool is_last = of.missing.fetch_sub(rows) == rows;
    if (is_last) space_freed();   // the storage may have room for another request
    outstanding_.fetch_sub(rows);
    change();
    return is_last;
  }

  const std::shared_ptr<row_storage> storage_;
  const row_feed_options options_;
  segment_row_target* const rows_;
  dispatcher& tickets_;
  const std::shared_ptr<feeder_row_gate> gate_ = std::make_shared<feeder_row_gate>();
  event_counts* counts_ = nullptr;
  std::size_t most_ = 0;   // maximum rows of a request
  std::atomic<std::uint64_t> changes_{0}, calls_{0}, slowest_ns_{0};
  std::atomic<std::size_t> outstanding_{0};   // rows that are claimed and missing
  std::atomic<bool> stopped_{false};
  std::uint64_t retry_at_ns_ = 0, pause_ns_ = 0;   // only the thread uses this line and the next one
  std::vector<std::shared_ptr<row_request>> requests_;
  doorbell bell_;
  std::thread thread_;
};

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

MILLRACE_INLINE detail::owner<detail::row_feed> row_storage::new_feed(const detail::row_feed_options& of,
                                                                      std::shared_ptr<row_provider> self) {
  return detail::make_owner<detail::row_requests>(std::static_pointer_cast<row_storage>(std::move(self)), of);
}

}}   // namespace millrace
