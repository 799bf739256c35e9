// The row storage of feeders: a network thread sends requests to feeders, and receives their rows.
//
//   auto rows = std::make_shared<mr::detail::feeder_client>(mr::feeder_options{.hosts = {"node7:8717"}});
//   options.rows = rows;                          // the session opens it
//
// The window of a feeder is the maximum number of rows that are requested from it at the same time. The network thread
// sends each request of the session to the feeder whose window has the most free rows. If a request fails, the thread
// sends it again, at most three times. For a repetition, the thread prefers another feeder. An answer with status 429
// does not count as a failure. If the third repetition fails, or if no feeder is ready, the workers of the session
// compute the rows.
// Errors: setup_error for invalid options, and if sessions with different rows share a storage. Threads: see
// row_storage.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_attempt.hpp>
#include <millrace/adapt/remote/store/curl_transfers.hpp>
#include <millrace/adapt/remote/transfer/retry_rule.hpp>
#include <millrace/base/random.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/notice_outlet.hpp>
#include <millrace/sync/start_thread.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The function that returns the addresses of a host, and the period of its calls.
struct feeder_lookup {
  std::function<std::vector<std::string>(const feeder_host&)> resolve = resolve_host;
  std::chrono::duration<double> period{10};
};

/// Receives rows from feeders.
class feeder_client final : public feeder_storage {
 public:
  explicit feeder_client(feeder_options o, feeder_lookup lookup = {})
      : options_(std::move(o)),
        hosts_(expand_hosts(options_.hosts)),
        lookup_(std::move(lookup)),
        notices_(options_.notice),
        hedges_(options_.hedge) {
    const auto expect = [](bool good, const char* what) {
      if (!good) throw setup_error(std::string("feeder_options: ") + what, "Correct the option", {.stage = "feeders"});
    };
    expect(!hosts_.empty(), "hosts is empty: expected at least one host");
    expect(is_token(options_.token), "token is invalid: expected printable ASCII characters without blanks");
    expect(options_.connect_limit.count() > 0 && options_.answer_limit.count() > 0 && options_.hedge.share >= 0 &&
               options_.hedge.share <= 0.5,
           "connect_limit, answer_limit or hedge.share is out of range: expected limits above 0 s, and a share from 0 "
           "to 0.5");
  }
  ~feeder_client() override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    transfers_.wake();
    thread_.join();
    if (!resolver_.joinable()) return;
    if (book_->is_complete.load()) resolver_.join();
    else resolver_.detach();   // resolving a name may last many seconds
  }

  void open(const row_run& run) override {
    std::string text = hello_text(run);
    if (thread_.joinable()) {
      if (text == hello_) return;
      throw setup_error("a storage of mr::feeders() serves one run: got a second session with other rows, expected "
                        "the flow, seed, data and columns of the first session",
                        "Create a separate storage with mr::feeders() for each run", {.stage = "feeders"});
    }
    hello_ = std::move(text);
    settings_ = feeder_attempt::settings{
        .options = &options_, .run = run_id(hello_), .max_row_bytes = run.max_row_bytes, .buffers = &buffers_};
    const std::size_t bytes_each = run.max_row_bytes + feeder_attempt::buffer_bytes(run.max_row_bytes);
    request_limit_ = std::clamp<std::size_t>(options_.memory_bytes / bytes_each, 1,
                                             feeder_connection_limit(max_requests));
    curl_multi_setopt(transfers_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(request_limit_));
    thread_ = start_thread([this] {
      name_worker_thread("millrace-net");
      work();
    });
  }
  std::size_t free_rows() override {
    const std::lock_guard lock(mutex_);
    return 8 * room_ < capacity_ ? 0 : std::min(room_, request_rows_);   // avoids requests for single rows
  }
  void read_rows(const row_range& range, row_slots slots) override {
    auto job = std::make_shared<feeder_job>(feeder_job{std::move(slots), range});
    {
      const std::lock_guard lock(mutex_);
      submitted_.push_back(std::move(job));
      room_ -= std::min(room_, range.count);
    }
    transfers_.wake();
  }
  std::vector<feeder_statistics> statistics() const override {
    const std::lock_guard lock(mutex_);
    return published_;
  }

 private:
  using job_pointer = std::shared_ptr<feeder_job>;
  using attempt_pointer = std::unique_ptr<feeder_attempt>;
  /// The addresses of the hosts. The thread that resolves the hosts cannot be interrupted, and may outlive the client.
  /// Therefore the thread and the client share ownership of this object.
  struct address_book {
    std::vector<feeder_host> all{};
    std::vector<std::pair<std::string, std::string>> problems{};   // names that were not resolved, and the reasons
    std::atomic<bool> is_complete{false};
  };

  static constexpr std::size_t max_requests = 512;
  static constexpr int max_attempts = 4;
  static constexpr std::int64_t tick_ns = 10'000'000, refused_pause_ns = 10'000'000'000, none_ready_ns = 1'000'000'000;

  void work() noexcept {
    for (bool goes_on = true; goes_on;) try {
        goes_on = work_once();
      } catch (...) {   // out of memory: the session computes the rows
        waiting_.clear();
      }
    while (!running_.empty()) end(running_.begin()->first);
    waiting_.clear();
    submitted_.clear();
  }

  bool work_once() {
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return false;
      waiting_.insert(waiting_.end(), submitted_.begin(), submitted_.end());
      submitted_.clear();
    }
    resolve_names(now_ns);
    std::erase_if(feeders_, [](const auto& f) { return !f->is_listed && f->running == 0; });
    for (const auto& f : feeders_)
      if (f->is_listed && !f->statistics.is_ready && !f->is_greeting && f->due_ns <= now_ns) start(*f, nullptr);
    assign(now_ns);
    transfers_.transfer();
    int left = 0;
    bool any_ended = false;
    while (const CURLMsg* const message = curl_multi_info_read(transfers_.get(), &left)) {
      const CURLcode code = message->data.result;
      if (const attempt_pointer a = end(message->easy_handle)) conclude(*a, code);
      any_ended = true;
    }
    if (now_ns >= next_check_ns_) check(now_ns);
    publish_room(now_ns);
    if (any_ended) return true;   // other requests may start
    const bool is_idle = running_.empty() && waiting_.empty() && !book_;
    transfers_.wait(static_cast<int>((is_idle ? 5 : 1) * tick_ns / 1'000'000));
    return true;
  }

  void publish_room(std::int64_t now_ns) {
    std::size_t windows = 0, requests = 0, used = 0;
    for (const auto& f : feeders_)
      if (f->may_compute(now_ns)) {
        windows += f->statistics.window;
        requests += f->requests_to_fill();
        used += f->statistics.in_flight;
      }
    const std::lock_guard lock(mutex_);
    for (const auto* const jobs : {&waiting_, &submitted_})
      for (const job_pointer& j : *jobs) used += j->range.count;
    requests = std::clamp<std::size_t>(requests, 1, request_limit_);
    request_rows_ = std::clamp<std::size_t>(windows / requests, 1, max_request_rows(settings_.max_row_bytes));
    capacity_ = std::min(windows, requests * request_rows_);
    room_ = capacity_ - std::min(capacity_, used);
  }

  void resolve_names(std::int64_t now_ns) {
    if (book_ && book_->is_complete.load()) {
      resolver_.join();
      update_feeders(*std::exchange(book_, nullptr));
    }
    if (book_ || now_ns < next_lookup_ns_) return;
    next_lookup_ns_ = now_ns + static_cast<std::int64_t>(1e9 * lookup_.period.count());
    auto book = std::make_shared<address_book>();
    resolver_ = start_thread([book, hosts = hosts_, resolve = lookup_.resolve]() mutable {
      for (feeder_host& host : hosts) try {
          for (std::string& numeric : resolve(host)) {
            host.numeric = std::move(numeric);
            book->all.push_back(host);
          }
        } catch (const std::exception& e) {
          book->problems.emplace_back(host.name(), e.what());
        }
      book->is_complete.store(true);
    });
    book_ = std::move(book);
  }

  void update_feeders(const address_book& book) {
    was_resolved_ = true;
    for (const auto& f : feeders_)   // keeps the addresses of names that were not resolved
      f->is_listed = f->is_listed && std::any_of(book.problems.begin(), book.problems.end(),
                                                 [&f](const auto& p) { return p.first == f->at.name(); });
    for (const feeder_host& a : book.all) {
      const auto same = std::find_if(feeders_.begin(), feeders_.end(),
                                     [&](const auto& f) { return f->statistics.address == a.text(); });
      if (same != feeders_.end()) {
        (*same)->is_listed = true;
        continue;
      }
      feeders_.push_back(std::make_unique<feeder_state>(a));
      feeders_.back()->request_rows = max_request_rows(settings_.max_row_bytes);
    }
    for (const auto& [name, problem] : book.problems) post_once(problem, problem + ". Millrace repeats the search");
  }

  /// Sends waiting requests to feeders. If no feeder is ready, leaves all waiting rows to the session.
  void assign(std::int64_t now_ns) {
    while (!waiting_.empty()) {
      const job_pointer j = waiting_.front();
      feeder_state* best = nullptr;
      std::size_t best_room = 0;
      bool any_ready = false;
      for (const auto& f : feeders_) {
        any_ready = any_ready || (f->is_listed && f->statistics.is_ready);
        if (!f->may_compute(now_ns) || !f->accepts_request()) continue;
        // The feeder of the last attempt gets the request only if no other feeder has room.
        const std::size_t room = j->last == f.get() ? 1 : 1 + f->statistics.window - f->statistics.in_flight;
        if (room > best_room) best = f.get();
        best_room = std::max(room, best_room);
      }
      const bool is_needed = any_ready && j->slots.is_needed();
      if (is_needed && (!best || running_.size() >= request_limit_)) return;
      waiting_.pop_front();
      if (is_needed) start(*best, j);   // otherwise the session computes the rows
    }
  }

  void start(feeder_state& f, job_pointer of, bool is_hedge = false) {
    auto a = std::make_unique<feeder_attempt>(f, std::move(of), settings_);
    a->is_hedge = is_hedge;
    CURL* const handle = a->handle.get();
    running_.emplace(handle, std::move(a));
    if (curl_multi_add_handle(transfers_.get(), handle) != CURLM_OK) end(handle);   // out of memory
  }
  attempt_pointer end(CURL* handle) {
    const auto entry = running_.find(handle);
    if (entry == running_.end()) return nullptr;
    attempt_pointer a = std::move(entry->second);
    running_.erase(entry);
    curl_multi_remove_handle(transfers_.get(), handle);
    return a;
  }

  /// Processes an answer, or the failure of a request.
  void conclude(feeder_attempt& a, CURLcode code) {
    feeder_state& f = a.to;
    const int status = a.status();
    a.read_workers();
    const std::string name = "the feeder " + printable(f.at.text(), 300), problem = a.problem_of(code);
    std::string refusal;
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
      refusal = "the certificate of " + name + " is not accepted: " + printable(problem, 300) +
                ". Set feeder_options::ca_file to a certificate of its authority, and use a name in its certificate";
    } else if (!problem.empty()) {
      fail(f, problem);
    } else if ((status == 409 || (status == 200 && !a.job)) && a.body != hello_) {
      refusal = feeder_run_difference({.mine = hello_, .theirs = a.body, .feeder = f.at.text()});
    } else if (status == 200) {
      return accept(a);
    } else if (status == 429) {
      const auto random_ns = static_cast<std::int64_t>((1 + 4 * random_.uniform()) * static_cast<double>(tick_ns));
      f.record_busy(a.sent_ns, read_clock_ns(CLOCK_MONOTONIC), std::max(a.pause_ns(), random_ns));
      if (a.job) --a.job->attempts;   // this attempt does not count
    } else if (status >= 500) {
      fail(f, "the feeder answers status " + std::to_string(status), a.pause_ns());
    } else if (status == 401 || status == 403) {
      refusal = name + " refuses the token: got status " + std::to_string(status) +
                ". Set feeder_options::token to the token of the feeders";
    } else {
      refusal = name + " answers status " + std::to_string(status) +
                ", expected 200. Check that the host and the port are those of a program that calls feed_rows()";
    }
    if (!refusal.empty()) {
      fail(f, refusal, refused_pause_ns);
      post_once(f.at.name() + " " + std::to_string(status), refusal + ". The run continues without this feeder");
    }
    retry(a.job);
  }

  void accept(const feeder_attempt& a) {
    if (!a.job) return a.to.record_hello();
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    a.to.record_answer(a.seconds(now_ns), a.requested_rows, now_ns);
    hedges_.record_first_byte(a.seconds(now_ns));
    a.to.statistics.hedges_won += a.is_hedge;
  }
  void fail(feeder_state& f, const std::string& problem, std::int64_t least_pause_ns = 0) {
    f.record_failure(problem, random_.uniform(), least_pause_ns);
  }
  /// Sends a request again. Does nothing if another request for the same rows is running, or after max_attempts
  /// attempts.
  void retry(const job_pointer& j) {
    if (!j || j->running > 1 || ++j->attempts >= max_attempts) return;
    j->is_hedged = false;
    waiting_.push_front(j);
  }

  /// Ends requests that are not needed. If an answer is late, uses a second feeder as well. Publishes the statistics.
  void check(std::int64_t now_ns) {
    next_check_ns_ = now_ns + tick_ns;
    std::vector<CURL*> handles;
    for (const auto& [handle, a] : running_) handles.push_back(handle);
    for (CURL* const handle : handles) {
      const feeder_attempt& a = *running_.at(handle);
      const job_pointer j = a.job;
      if (!j) continue;
      if (!j->slots.is_needed()) {   // the session or another feeder has computed the rows
        const attempt_pointer ended = end(handle);
        if (!j->is_hedged) fail(ended->to, "the answer was too late");
      } else if (!j->is_hedged && a.seconds(now_ns) > hedges_.late_seconds()) {
        hedge(j, now_ns);
      }
    }
    report_none_ready(now_ns);
    const std::lock_guard lock(mutex_);
    published_.clear();
    for (const auto& f : feeders_) published_.push_back(f->statistics);
  }
  void hedge(const job_pointer& j, std::int64_t now_ns) {
    for (const auto& f : feeders_) {
      if (!f->may_compute(now_ns) || f.get() == j->last || !f->accepts_request()) continue;
      if (f->statistics.in_flight > 0 && !hedges_.take(1, running_.size())) return;
      j->is_hedged = true;
      return start(*f, j, true);
    }
  }

  void report_none_ready(std::int64_t now_ns) {
    std::string problem = "no name has an address";
    for (const auto& f : feeders_) {
      if (f->statistics.is_ready || f->statistics.failures == 0) last_ready_ns_ = now_ns;
      problem = f->at.text() + ": " + f->statistics.problem;
    }
    if (!was_resolved_ || last_ready_ns_ == 0) last_ready_ns_ = now_ns;
    if (now_ns - last_ready_ns_ > none_ready_ns)
      post_once("none", "no feeder is left (" + problem +
                            "). The workers compute all rows. Feeders that return are used again");
  }
  void post_once(const std::string& what, const std::string& text) {
    if (reported_.insert(what).second)
      notices_.deliver({.kind = notice_kind::rows, .severity = notice_severity::warning, .text = text});
  }

  const feeder_options options_;
  const std::vector<feeder_host> hosts_;
  const feeder_lookup lookup_;
  notice_outlet notices_;
  curl_transfers transfers_;
  std::string hello_;   // the text of the run; constant after open(), like the next two lines
  feeder_attempt::settings settings_{};
  std::size_t request_limit_ = 0;

  mutable std::mutex mutex_;   // guards the next four lines
  std::deque<job_pointer> submitted_;
  std::vector<feeder_statistics> published_;
  std::size_t capacity_ = 0, room_ = 0, request_rows_ = 1;   // numbers of rows: in all windows, free, in one request
  bool ending_ = false;

  // Only the network thread uses these.
  std::vector<std::unique_ptr<feeder_state>> feeders_;
  std::deque<job_pointer> waiting_;
  row_buffers buffers_;   // declared before running_, so that the buffers outlive the decoders that use them
  std::unordered_map<CURL*, attempt_pointer> running_;
  hedge_rule hedges_;
  rng random_{{.seed = steady_now_ns()}};
  std::set<std::string> reported_;
  std::int64_t next_check_ns_ = 0, next_lookup_ns_ = 0, last_ready_ns_ = 0;
  std::shared_ptr<address_book> book_;   // set only while names are being resolved
  bool was_resolved_ = false;

  std::thread resolver_, thread_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/feeder_client.inl>
#endif
