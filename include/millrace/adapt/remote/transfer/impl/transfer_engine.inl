// Definitions for transfer_engine.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/transfer_engine.hpp>

#include <millrace/sync/start_thread.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE transfer_engine::transfer_engine(remote_options o)
    : options_(std::move(o)), addresses_(options_), hedges_(options_.hedge) {
  require_curl();
  multi_.reset(curl_multi_init());
  if (!multi_) throw std::bad_alloc();
  const long connections = static_cast<long>(options_.requests) + 4;
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, connections);
  curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, connections);
  thread_ = start_thread([this] { run(); });
}

MILLRACE_INLINE transfer_engine::~transfer_engine() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  curl_multi_wakeup(multi_.get());
  thread_.join();
}

MILLRACE_INLINE void transfer_engine::submit(std::shared_ptr<range_fetch> fetch) {
  // A search for keys can be slow. Therefore it must not run on the network thread.
  auto job = std::make_shared<fetch_job>(fetch_job{.fetch = std::move(fetch), .retry = retry_state(steady_ns())});
  try {
    job->sent = addresses_.address(job->fetch->object()->name);
  } catch (const credentials_pending& e) {
    job->wait(e.pause_seconds);   // the network thread builds the request
  }
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(job));
  }
  curl_multi_wakeup(multi_.get());
}

MILLRACE_INLINE void transfer_engine::sweep() noexcept {
  {
    const std::lock_guard lock(mutex_);
    sweeping_ = true;
  }
  curl_multi_wakeup(multi_.get());
}

MILLRACE_INLINE void transfer_engine::run() noexcept {
  for (;;) {
    try {
      if (!run_once()) break;
    } catch (...) {
      fail_all(std::current_exception());   // out of memory
    }
  }
  for (auto& [handle, attempt] : running_) curl_multi_remove_handle(multi_.get(), handle);
  running_.clear();
}

MILLRACE_INLINE bool transfer_engine::run_once() {
  bool sweep = false;
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    for (auto& job : submitted_) waiting_.push_back(std::move(job));
    submitted_.clear();
    sweep = std::exchange(sweeping_, false);
  }
  if (sweep) drop_abandoned();
  const std::int64_t now_ns = steady_ns();
  const std::int64_t next_ns = start_due(now_ns);
  int running = 0;
  curl_multi_perform(multi_.get(), &running);
  bool ended = false;
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    finish(message->easy_handle, message->data.result);
    ended = true;
  }
  if (now_ns >= next_check_ns_) {
    handle_late_requests(now_ns);
    ended = true;
  }
  if (ended) return true;   // other requests may start
  std::int64_t until_ns = running_.empty() ? now_ns + 3'600'000'000'000 : next_check_ns_;
  if (next_ns > 0) until_ns = std::min(until_ns, next_ns);
  const std::int64_t before_ns = steady_ns(), pause_ns = std::max<std::int64_t>(until_ns - before_ns, 0);
  const auto pause_ms = static_cast<int>(std::min<std::int64_t>(pause_ns / 1'000'000 + 1, 60'000));
  curl_multi_poll(multi_.get(), nullptr, 0, pause_ms, nullptr);
  idle_ns_.fetch_add(steady_ns() - before_ns, std::memory_order_relaxed);
  return true;
}

MILLRACE_INLINE std::int64_t transfer_engine::start_due(std::int64_t now_ns) {
  std::int64_t next_ns = 0;
  const auto later = [&](std::int64_t at_ns) { next_ns = next_ns == 0 ? at_ns : std::min(next_ns, at_ns); };
  for (auto it = waiting_.begin(); it != waiting_.end() && running_.size() < options_.requests;) {
    if (allowed_ns_ > now_ns) {
      later(allowed_ns_);
      break;
    }
    if ((*it)->due_ns > now_ns) {
      later((*it)->due_ns);
      ++it;
      continue;
    }
    const job_pointer job = std::move(*it);
    it = waiting_.erase(it);
    if (!job->fetch->is_over()) start(job, fetch_attempt::kind::plain);
  }
  return next_ns;
}

MILLRACE_INLINE void transfer_engine::start(const job_pointer& job, fetch_attempt::kind kind) {
  try {
    const transfer_object& object = *job->fetch->object();
    if (!object.redirected_to.empty()) {
      job->sent = addresses_.redirected(object.name, object.redirected_to);
    } else if (!job->sent) {
      job->sent = addresses_.address(object.name);
    }
    curl_easy handle = idle_.empty() ? curl_easy() : std::move(idle_.back());
    if (!idle_.empty()) idle_.pop_back();
    handle.reset();
    auto attempt = std::make_unique<fetch_attempt>(job, options_, kind, std::move(handle));
    CURL* const key = attempt->handle();
    const byte_interval range = job->missing();
    const auto [entry, added] = running_.emplace(key, std::move(attempt));
    if (curl_multi_add_handle(multi_.get(), key) != CURLM_OK) {
      running_.erase(entry);
      throw std::bad_alloc();
    }
    ++job->running;
    const double seconds = retry_limits_in_seconds(options_, range.end_byte - range.first_byte);
    if (seconds > 0) allowed_ns_ = std::max(allowed_ns_, steady_ns()) + static_cast<std::int64_t>(1e9 * seconds);
  } catch (const credentials_pending& e) {
    job->wait(e.pause_seconds);
    return waiting_.push_back(job);
  } catch (...) {
    return job->fetch->fail(std::current_exception());
  }
  log_.sent(kind == fetch_attempt::kind::hedge, running_.size());
}

MILLRACE_INLINE void transfer_engine::ended(const fetch_attempt& attempt) {
  log_.ended(attempt, running_.size());
  if (attempt.first_byte_ns() == 0) return;
  connected_ = true;
  const http_answer_kind got = attempt.judged().what;
  if (got == http_answer_kind::bytes || got == http_answer_kind::nothing)
    addresses_.accepted(attempt.job()->fetch->object()->name, attempt.sent());
  hedges_.record_first_byte(attempt.first_byte_seconds());
}

MILLRACE_INLINE void transfer_engine::finish(CURL* handle, CURLcode code) {
  const auto entry = running_.find(handle);
  if (entry == running_.end()) return;
  const attempt_pointer attempt = remove_attempt(entry);
  conclude(*attempt, code);
  idle_.push_back(attempt->take_handle());
}

MILLRACE_INLINE transfer_engine::attempt_pointer transfer_engine::remove_attempt(
    std::unordered_map<CURL*, attempt_pointer>::iterator entry) {
  attempt_pointer attempt = std::move(entry->second);
  running_.erase(entry);
  curl_multi_remove_handle(multi_.get(), attempt->handle());
  --attempt->job()->running;
  ended(*attempt);
  return attempt;
}

MILLRACE_INLINE void transfer_engine::conclude(const fetch_attempt& attempt, CURLcode code) {
  const job_pointer& job = attempt.job();
  range_fetch& fetch = *job->fetch;
  if (fetch.is_over()) return stop(job);
  const int status = attempt.answer().status;
  switch (attempt.judged().what) {
    case http_answer_kind::nothing: return;   // is_over() has already returned true
    case http_answer_kind::replaced: return fail(job, replaced_object_error(*job, attempt.judged().problem));
    case http_answer_kind::other:
      if (status >= 200 && (code == CURLE_OK || !attempt.answer().body.empty())) return refused(attempt);
      break;
    default: break;
  }
  if (job->running > 0) return;   // another attempt continues
  job->retry.record_progress(attempt.accepted_bytes(), attempt.requested_bytes(), steady_ns());
  retry_later(job, attempt.problem(code, options_));
}

MILLRACE_INLINE void transfer_engine::refused(const fetch_attempt& attempt) {
  const job_pointer& job = attempt.job();
  transfer_object& object = *job->fetch->object();
  const small_answer& answer = attempt.answer();
  if (answer.status >= 300 && answer.status < 400 && is_web_name(object.name)) return follow(attempt);
  if (!object.redirected_to.empty() && answer.status >= 400 && answer.status < 500 && answer.status != 429) {
    object.redirected_to.clear();   // such addresses are valid only for a few minutes
    if (++job->redirects <= max_redirects) return retry_now(job);
  }
  const store_answer error = read_store_answer(answer);
  if (answer.status == 404 && (error.is_missing_object() || is_web_name(object.name))) {
    addresses_.accepted(object.name, attempt.sent());
    stop(job);
    return job->fetch->report_missing();
  }
  remedy next = addresses_.handle_refusal(object.name, attempt.sent(), answer);
  if (next.what == remedy::kind::at_once && ++job->recoveries <= max_recoveries) {
    log_.failed(failure_kind::refused);
    return retry_now(job);
  }
  if (next.what == remedy::kind::later) {
    if (job->running > 0) return;
    log_.failed(failure_kind::busy);
    job->wait(next.pause_seconds);
    return waiting_.push_front(job);
  }
  if (error.is_transient()) {
    if (job->running > 0) return;
    return retry_later(
        job, {failure_kind::busy,
              "the server answered " + std::to_string(answer.status) + request_addresses::refusal_message(answer),
              false, requested_pause_ns(answer)});
  }
  fail(job, exception_of(addresses_.failure(object.name, attempt.sent(), answer, next.attempted)));
}

MILLRACE_INLINE void transfer_engine::follow(const fetch_attempt& attempt) {
  const job_pointer& job = attempt.job();
  const char* to = nullptr;
  curl_easy_getinfo(attempt.handle(), CURLINFO_REDIRECT_URL, &to);
  const std::string target = to ? to : "";
  const bool safe = target.starts_with("https://") ||
                    (target.starts_with("http://") && attempt.sent().url.starts_with("http://"));
  if (!safe || ++job->redirects > max_redirects) return fail(job, redirect_error(*job, target, safe));
  job->fetch->object()->redirected_to = target;
  log_.redirected();
  retry_now(job);
}

MILLRACE_INLINE void transfer_engine::retry_later(const job_pointer& job, fetch_problem problem) {
  job->problem = std::move(problem);
  job->sent.reset();   // the next request is signed again
  const failure_kind kind = job->problem.kind;
  job->on_new_connection = kind == failure_kind::broken_off || kind == failure_kind::stalled;
  job->hedged = false;
  log_.failed(kind);
  const std::int64_t now_ns = steady_ns();
  remote_retries rule = options_.retry;
  // If the name of a server is wrong, the request must fail soon.
  if (kind == failure_kind::not_connected && !connected_) rule.attempts = std::min(rule.attempts, 4);
  if (job->problem.is_final) rule.attempts = 1;
  const auto pause_ns = job->retry.next_pause_ns(rule, now_ns, random_.uniform(), job->problem.least_pause_ns);
  if (!pause_ns) return fail(job, given_up(*job));
  job->due_ns = now_ns + *pause_ns;
  waiting_.push_front(job);   // its reader has waited longer than the readers of later jobs
}

MILLRACE_INLINE void transfer_engine::retry_now(const job_pointer& job) {
  job->sent.reset();
  waiting_.push_front(job);
}

MILLRACE_INLINE void transfer_engine::fail(const job_pointer& job, std::exception_ptr why) {
  stop(job);
  job->fetch->fail(std::move(why));
  log_.given_up();
}

MILLRACE_INLINE void transfer_engine::stop(const job_pointer& job) {
  if (job->running == 0) return;
  for (auto it = running_.begin(); it != running_.end();) {
    const auto entry = it++;
    if (entry->second->job() == job) remove_attempt(entry);
  }
}

MILLRACE_INLINE void transfer_engine::drop_abandoned() {
  std::vector<job_pointer> over;
  for (const auto& [handle, attempt] : running_)
    if (attempt->job()->fetch->is_over() && !attempt->completed_fetch()) over.push_back(attempt->job());
  for (const job_pointer& job : over) stop(job);
  std::erase_if(waiting_, [](const job_pointer& job) { return job->fetch->is_over(); });
}

MILLRACE_INLINE void transfer_engine::handle_late_requests(std::int64_t now_ns) {
  next_check_ns_ = now_ns + check_period_ns();
  std::vector<CURL*> stalled;
  std::vector<job_pointer> late;
  for (const auto& [handle, attempt] : running_) {
    if (attempt->is_stalled(options_, now_ns)) stalled.push_back(handle);
    else if (attempt->first_byte_ns() == 0 && !attempt->job()->hedged && attempt->job()->running == 1 &&
             1e-9 * static_cast<double>(now_ns - attempt->begun_ns()) > hedges_.late_seconds())
      late.push_back(attempt->job());
  }
  for (CURL* const handle : stalled) end_stalled(handle);
  for (const job_pointer& job : late) {
    if (job->fetch->is_over() || !hedges_.take(late.size(), running_.size())) continue;
    job->hedged = true;
    start(job, fetch_attempt::kind::hedge);
  }
}

MILLRACE_INLINE void transfer_engine::end_stalled(CURL* handle) {
  const auto entry = running_.find(handle);
  if (entry == running_.end()) return;
  const attempt_pointer attempt = remove_attempt(entry);
  const job_pointer job = attempt->job();
  if (job->running > 0 || job->fetch->is_over()) return;
  job->retry.record_progress(attempt->accepted_bytes(), attempt->requested_bytes(), steady_ns());
  retry_later(job, stalled_problem(options_));
}

MILLRACE_INLINE std::int64_t transfer_engine::check_period_ns() const noexcept {
  const double shortest = std::min(options_.stall_limit, options_.hedge.least_wait).count();
  return static_cast<std::int64_t>(1e9 * std::clamp(shortest / 8, 0.01, 0.25));
}

MILLRACE_INLINE void transfer_engine::fail_all(const std::exception_ptr& why) noexcept {
  for (auto& [handle, attempt] : running_) {
    curl_multi_remove_handle(multi_.get(), handle);
    attempt->job()->fetch->fail(why);
  }
  running_.clear();
  for (const auto& job : waiting_) job->fetch->fail(why);
  waiting_.clear();
}

}}}   // namespace millrace::detail
