// Definitions for feeder_client.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_client.hpp>

#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>

// clang-format off
namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
// clang-format on

MILLRACE_INLINE feeder_client::feeder_client(feeder_options o, feeder_lookup lookup)
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
  expect(options_.connect_limit.count() > 0 && options_.stall_limit.count() > 0 && options_.hedge.share >= 0 &&
             options_.hedge.share <= 0.5,
         "a limit or hedge.share is out of range: expected more than 0 s, and a share of 0 to 0.5");
}

MILLRACE_INLINE feeder_client::~feeder_client() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  transfers_.wake();
  thread_.join();
  if (!resolver_.joinable()) return;
  if (book_->is_complete.load()) resolver_.join();
  else resolver_.detach();   // a search for a name may last many seconds
}

MILLRACE_INLINE void feeder_client::open(const row_run& run) {
  std::string text = hello_text(identity_of(run));
  if (thread_.joinable()) {
    if (text == hello_) return;
    throw setup_error("a storage of mr::feeders() serves one run: got a session with other rows, expected the same "
                      "flow, seed, data and layout",
                      "Create a storage with mr::feeders() for each session", {.stage = "feeders"});
  }
  hello_ = std::move(text);
  settings_ = feeder_attempt::settings{
      .options = &options_, .run = run_id(hello_), .max_row_bytes = run.max_row_bytes, .buffers = &buffers_};
  const std::size_t bytes_each = run.max_row_bytes + feeder_attempt::buffer_bytes(run.max_row_bytes);
  request_limit_ = std::clamp<std::size_t>(options_.memory_bytes / bytes_each, 1, connection_limit(max_requests));
  curl_multi_setopt(transfers_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(request_limit_));
  thread_ = start_thread([this] {
    name_worker_thread("millrace-net");
    this->run();
  });
}

MILLRACE_INLINE std::size_t feeder_client::free_rows() {
  const std::size_t capacity = capacity_.load(), room = capacity - std::min(capacity, outstanding_.load());
  return 8 * room < capacity ? 0 : room;   // no requests for single rows
}

MILLRACE_INLINE void feeder_client::read_rows(const row_range& range, row_slots slots) {
  auto shared = std::make_shared<row_slots>(std::move(slots));
  auto part = std::make_shared<feeder_part>(std::move(shared), range, outstanding_);
  outstanding_.fetch_add(range.count);   // the destructor of the part subtracts them
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(part));
  }
  transfers_.wake();
}

MILLRACE_INLINE std::vector<feeder_statistics> feeder_client::statistics() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

MILLRACE_INLINE void feeder_client::run() noexcept {
  for (;;) {
    try {
      if (!run_once()) break;
    } catch (...) {   // out of memory: the session computes the rows
      waiting_.clear();
    }
  }
  while (!running_.empty()) end(running_.begin()->first);
  waiting_.clear();
  submitted_.clear();
}

MILLRACE_INLINE bool feeder_client::run_once() {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    waiting_.insert(waiting_.end(), submitted_.begin(), submitted_.end());
    submitted_.clear();
  }
  const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  resolve_names(now_ns);
  greet(now_ns);
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
  std::size_t capacity = 0;
  for (const auto& f : feeders_)
    if (f->may_compute(now_ns)) capacity += f->statistics.window;
  capacity_.store(capacity);
  if (any_ended) return true;   // other parts may start
  const std::int64_t pause_ns = running_.empty() && waiting_.empty() && !book_ ? 5 * tick_ns : tick_ns;
  transfers_.wait(static_cast<int>(pause_ns / 1'000'000));
  return true;
}

MILLRACE_INLINE void feeder_client::resolve_names(std::int64_t now_ns) {
  if (book_ && book_->is_complete.load()) {
    resolver_.join();
    update_feeders(*std::exchange(book_, nullptr));
  }
  if (book_ || now_ns < next_lookup_ns_) return;
  next_lookup_ns_ = now_ns + static_cast<std::int64_t>(1e9 * lookup_.period.count());
  auto book = std::make_shared<address_book>();
  resolver_ = start_thread([book, hosts = hosts_, resolve = lookup_.resolve] {
    for (const feeder_host& host : hosts) try {
        for (std::string& numeric : resolve(host)) book->all.push_back({host, std::move(numeric)});
      } catch (const std::exception& e) {
        book->problems.emplace_back(host.name(), e.what());
      }
    book->is_complete.store(true);
  });
  book_ = std::move(book);
}

MILLRACE_INLINE void feeder_client::update_feeders(address_book& book) {
  was_resolved_ = true;
  const auto has_problem = [&book](const feeder_state& f) {   // its addresses stay
    return std::any_of(book.problems.begin(), book.problems.end(),
                       [&f](const auto& p) { return p.first == f.at.of.name(); });
  };
  for (const auto& f : feeders_) f->is_listed = f->is_listed && has_problem(*f);
  for (feeder_address& a : book.all) {
    const auto same = std::find_if(feeders_.begin(), feeders_.end(),
                                   [&](const auto& f) { return f->statistics.address == a.text(); });
    if (same == feeders_.end()) {
      feeders_.push_back(std::make_unique<feeder_state>(std::move(a)));
      feeders_.back()->request_rows = max_request_rows(settings_.max_row_bytes);
    } else {
      (*same)->is_listed = true;
    }
  }
  for (const auto& [name, problem] : book.problems) post_once(problem, problem + ". Millrace repeats the search");
}

MILLRACE_INLINE void feeder_client::greet(std::int64_t now_ns) {
  std::erase_if(feeders_, [](const auto& f) { return !f->is_listed && f->running == 0; });
  for (const auto& f : feeders_)
    if (f->is_listed && !f->statistics.is_ready && !f->is_greeting && f->due_ns <= now_ns) start(*f, nullptr);
}

MILLRACE_INLINE void feeder_client::assign(std::int64_t now_ns) {
  while (!waiting_.empty()) {
    const part_pointer p = waiting_.front();
    feeder_state* best = nullptr;
    std::size_t best_room = 0;
    bool any_ready = false;
    for (const auto& f : feeders_) {
      any_ready = any_ready || (f->is_listed && f->statistics.is_ready);
      if (!f->may_compute(now_ns) || !f->accepts_request()) continue;
      // The feeder of the last attempt gets the part only if no other feeder has room.
      const std::size_t room = p->last == f.get() ? 1 : 1 + f->statistics.window - f->statistics.in_flight;
      if (room > best_room) best = f.get();
      best_room = std::max(room, best_room);
    }
    if (!any_ready || !p->slots->is_needed()) {
      waiting_.pop_front();   // the session computes the rows
      continue;
    }
    if (!best || running_.size() >= request_limit_) return;
    const feeder_statistics& s = best->statistics;
    const std::size_t requests = std::clamp<std::size_t>(best->requests_to_fill(), 1,
                                                         std::max<std::size_t>(request_limit_ / feeders_.size(), 1));
    const std::size_t most = std::clamp<std::size_t>(s.window / requests, 1, best->request_rows);
    const std::size_t count = std::min({p->range.count, s.window - s.in_flight, most});
    waiting_.pop_front();
    if (count < p->range.count) {
      row_range others = p->range;
      others.first += count * others.step, others.count -= count;
      waiting_.push_front(std::make_shared<feeder_part>(p->slots, others, outstanding_));
      waiting_.front()->first = p->first + count;
      waiting_.front()->attempts = p->attempts;
      p->range.count = count;
    }
    start(*best, p);
  }
}

MILLRACE_INLINE void feeder_client::start(feeder_state& f, part_pointer of, bool is_hedge) {
  auto a = std::make_unique<feeder_attempt>(f, std::move(of), settings_);
  a->is_hedge = is_hedge;
  CURL* const handle = a->handle.get();
  running_.emplace(handle, std::move(a)).first->second->count_start();
  if (curl_multi_add_handle(transfers_.get(), handle) != CURLM_OK) end(handle);   // out of memory
}

MILLRACE_INLINE feeder_client::attempt_pointer feeder_client::end(CURL* handle) {
  const auto entry = running_.find(handle);
  if (entry == running_.end()) return nullptr;
  attempt_pointer a = std::move(entry->second);
  running_.erase(entry);
  curl_multi_remove_handle(transfers_.get(), handle);
  a->count_end();
  return a;
}

MILLRACE_INLINE void feeder_client::conclude(feeder_attempt& a, CURLcode code) {
  feeder_state& f = a.to;
  const int status = a.status();
  a.read_workers();
  const std::string name = "the feeder " + printable(f.at.text(), 300);
  const std::string problem = a.problem_of(code);
  try {
    if (problem.empty() && (status == 409 || (status == 200 && !a.part)))
      check_hello({.mine = hello_, .theirs = a.body, .feeder = f.at.text()});
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
      refuse(f, 0,
             "the certificate of " + name + " is not accepted: " + printable(problem, 300) +
                 ". Set feeder_options::ca_file to a certificate of its authority, and use a name in its certificate");
    } else if (!problem.empty()) {
      fail(f, problem);
    } else if (status == 200) {
      return accept(a);
    } else if (status == 429) {
      const auto random_ns = static_cast<std::int64_t>((1 + 4 * random_.uniform()) * static_cast<double>(tick_ns));
      f.record_busy(a.sent_ns, read_clock_ns(CLOCK_MONOTONIC), std::max(a.pause_ns(), random_ns));
      if (a.part) --a.part->attempts;   // another attempt is allowed
    } else if (status >= 500) {
      fail(f, "the feeder answers status " + std::to_string(status), a.pause_ns());
    } else if (status == 401 || status == 403) {
      refuse(f, status,
             name + " refuses the token: got status " + std::to_string(status) +
                 ". Set feeder_options::token to the token of the feeders");
    } else {
      refuse(f, status,
             name + " answers status " + std::to_string(status) +
                 ", expected 200. Check that the host and the port are those of a program that calls feed_rows()");
    }
  } catch (const setup_error& e) {
    refuse(f, 409, e.message() + ". " + e.hint());
  } catch (const data_error& e) {
    refuse(f, 409, name + " refuses the run: " + e.message() + ". " + e.hint());
  }
  retry(a.part);
}

MILLRACE_INLINE void feeder_client::accept(const feeder_attempt& a) {
  feeder_state& f = a.to;
  if (!a.part) return f.record_hello();
  const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  f.record_answer(a.seconds(now_ns), a.requested_rows, now_ns);
  hedges_.record_first_byte(a.seconds(now_ns));
  if (std::exchange(a.part->is_done, true)) return;
  f.statistics.hedges_won += a.is_hedge;
  std::vector<CURL*> others;
  for (const auto& [handle, other] : running_)
    if (other->part == a.part) others.push_back(handle);
  for (CURL* const handle : others) end(handle);
}

MILLRACE_INLINE void feeder_client::refuse(feeder_state& f, int status, const std::string& problem) {
  fail(f, problem, refused_pause_ns);
  post_once(f.at.of.name() + " " + std::to_string(status), problem + ". The run continues without this feeder");
}

MILLRACE_INLINE void feeder_client::retry(const part_pointer& p) {
  if (!p || p->is_done || p->running > 0 || ++p->attempts >= max_attempts) return;
  p->is_hedged = false;
  waiting_.push_front(p);
}

MILLRACE_INLINE void feeder_client::check(std::int64_t now_ns) {
  next_check_ns_ = now_ns + tick_ns;
  std::vector<CURL*> handles;
  for (const auto& [handle, a] : running_) handles.push_back(handle);
  for (CURL* const handle : handles) {
    const feeder_attempt& a = *running_.at(handle);
    feeder_state& f = a.to;
    const part_pointer p = a.part;
    const double age = a.seconds(now_ns), pause = 1e-9 * static_cast<double>(now_ns - f.progress_ns);
    if (p && !p->slots->is_needed()) {   // the session has computed the rows, or has ended
      end(handle);
      fail(f, "the answer was too late");
    } else if (std::min(age, pause) > std::max(options_.stall_limit.count(), 4 * f.slowest_seconds)) {
      end(handle);
      fail(f, "the feeder sent nothing for " + seconds_text(static_cast<std::uint64_t>(1e9 * pause)));
      retry(p);
    } else if (p && !p->is_hedged && p->running == 1 && age > hedges_.late_seconds()) {
      hedge(p, now_ns);
    }
  }
  report_none_ready(now_ns);
  const std::lock_guard lock(mutex_);
  published_.clear();
  for (const auto& f : feeders_) published_.push_back(f->statistics);
}

MILLRACE_INLINE void feeder_client::hedge(const part_pointer& p, std::int64_t now_ns) {
  for (const auto& f : feeders_) {
    if (!f->may_compute(now_ns) || f.get() == p->last || !f->accepts_request()) continue;
    if (f->statistics.in_flight > 0 && !hedges_.take(1, running_.size())) return;
    p->is_hedged = true;
    return start(*f, p, true);
  }
}

MILLRACE_INLINE void feeder_client::report_none_ready(std::int64_t now_ns) {
  std::string problem = "no name has an address";
  for (const auto& f : feeders_) {
    if (f->statistics.is_ready || f->statistics.failures == 0) last_ready_ns_ = now_ns;
    problem = f->at.text() + ": " + f->statistics.problem;
  }
  if (!was_resolved_ || last_ready_ns_ == 0) last_ready_ns_ = now_ns;
  if (now_ns - last_ready_ns_ > none_ready_ns)
    post_once("none",
              "no feeder is left (" + problem + "). The workers compute all rows. Feeders that return are used again");
}

MILLRACE_INLINE void feeder_client::post_once(const std::string& what, const std::string& text) {
  if (!reported_.insert(what).second) return;
  notices_.deliver({.kind = notice_kind::rows, .severity = notice_severity::warning, .text = text});
}

}   // namespace detail

MILLRACE_INLINE std::shared_ptr<feeder_storage> feeders(feeder_options options) {
  return std::make_shared<detail::feeder_client>(std::move(options));
}

}}   // namespace millrace
