// Creates the errors of failed fetches. Reads the pause that a server requests.
//
//   part->fail(mr::detail::given_up(job));
//   const std::int64_t pause_ns = mr::detail::requested_pause_ns(answer);   // Retry-After, in seconds or as a date
//
// Errors: std::bad_alloc. Threads: any thread.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_job.hpp>
#include <millrace/base/clock.hpp>

#include <cstdint>
#include <exception>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline std::int64_t steady_ns() noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

/// Returns the description of a stalled attempt.
fetch_problem stalled_problem(const remote_options& o);
/// Returns the error for a fetch whose last attempt failed.
std::exception_ptr given_up(const fetch_job& job);
/// Returns the error for an object that was replaced.
std::exception_ptr replaced_error(const fetch_job& job, const std::string& what);

inline constexpr int max_redirects = 5;

/// Returns the error for a redirect that is not followed.
std::exception_ptr redirect_error(const fetch_job& job, const std::string& target, bool is_safe);
/// Returns the pause in ns that the server requests, or 0 if it requests none.
std::int64_t requested_pause_ns(const small_answer& answer);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/fetch_errors.inl>
#endif
