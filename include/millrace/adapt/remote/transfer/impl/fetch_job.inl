// Definitions for fetch_job.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_job.hpp>

#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/adapt/remote/transfer/request_addresses.hpp>

#include <algorithm>
#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE fetch_problem stalled_problem(const remote_options& o) {
  char text[120];
  std::snprintf(text, sizeof text, "the server sent less than %llu bytes a second for %.3g s",
                static_cast<unsigned long long>(o.stall_bytes_per_second), o.stall_limit.count());
  return {failure_kind::stalled, text};
}

/// Returns an error with the name of the object, and the offset of the first missing byte.
MILLRACE_INLINE std::exception_ptr fetch_error(const fetch_job& job, const std::string& text, const std::string& hint) {
  return std::make_exception_ptr(io_error(text, hint,
                                          {.stage = "remote",
                                           .shard = without_secrets(job.fetch->object()->name),
                                           .offset_bytes = job.missing().first_byte}));
}

MILLRACE_INLINE std::exception_ptr given_up(const fetch_job& job) {
  char tries[80];
  const int attempts = job.retry.attempts();
  std::snprintf(tries, sizeof tries, " (%d %s in %.3g s)", attempts, attempts == 1 ? "attempt" : "attempts",
                job.retry.seconds(steady_ns()));
  const std::string hint = job.problem.kind == failure_kind::not_connected
                               ? "Check the name, the network and the certificates"
                           : job.problem.kind == failure_kind::wrong
                               ? "Check for a server or a proxy that does not support range requests"
                               : "Check the server and the network. remote_options::retry sets the time for retries";
  return fetch_error(job, "cannot read the object: " + job.problem.text + tries, hint);
}

MILLRACE_INLINE std::exception_ptr replaced_error(const fetch_job& job, const std::string& what) {
  if (job.fetch->object()->is_assumed)
    return fetch_error(job, "the object differs from the one in the set index: " + printable(what, 300),
                       "Write the set index again with inspect --set-index");
  return fetch_error(job, "the object was replaced while it was being read: " + printable(what, 300),
                     "Write new data under a new name, and start again");
}

MILLRACE_INLINE std::exception_ptr redirect_error(const fetch_job& job, const std::string& target, bool is_safe) {
  const std::string what = is_safe ? "more than " + std::to_string(max_redirects) + " times"
                                   : "to " + (target.empty() ? "nowhere" : printable(without_secrets(target), 200));
  return fetch_error(job, "the server redirects " + what + ": expected http or https, and never from https to http",
                     "Use the object's final address");
}

MILLRACE_INLINE std::int64_t requested_pause_ns(const small_answer& answer) {
  const std::string_view text = header_value(answer.headers, "retry-after");
  std::int64_t seconds = 0;
  if (const auto number = decimal_number(text)) {
    seconds = static_cast<std::int64_t>(std::min<std::uint64_t>(*number, 1'000'000));
  } else if (const auto then = http_date_seconds(text)) {
    seconds = *then - read_clock_ns(CLOCK_REALTIME) / 1'000'000'000;
  }
  return std::max<std::int64_t>(seconds, 0) * 1'000'000'000;
}

}}}   // namespace millrace::detail
