// Decides how a feeder answers a request. These functions do not depend on the HTTP server.
//
//   const mr::detail::feeder_rules rules{.token = secret, .hello = hello_text(identity), .max_rows = 64};
//   const auto d = mr::detail::decide({.method = "GET", .path = path, .authorization = header}, rules);
//   if (d.action == mr::detail::feeder_action::rows) compute(d.range);
//   else answer(d.status, d.text);
//
// Requests are untrusted: a request cannot name a file, and the texts of refusals are safe to print.
// Errors: none. Threads: pure functions. Cost: the length of the token does not influence the
// time of its comparison.
#pragma once

#include <millrace/adapt/feeders/row_protocol.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The parts of a request on which its answer depends.
struct feeder_request {
  std::string_view method{}, path{};
  std::string_view authorization{};   ///< value of the header; empty if it is missing
  bool has_body = false;
};
/// The settings of a feeder on which its answers depend.
struct feeder_rules {
  std::string token{};   ///< if empty, no token is needed
  std::string hello{};   ///< hello_text() of the feeder
  std::string run{};     ///< run_id() of `hello`
  std::size_t max_rows = 64;
};
/// The kind of an answer. `text`: the answer is known immediately. The other kinds are computed rows, current metrics,
/// and the state of the feeder.
enum class feeder_action : std::uint8_t { text, rows, metrics, health };
/// The answer to a request, or the range of its rows.
struct feeder_decision {
  feeder_action action = feeder_action::text;
  unsigned status = 200;
  std::string text{};
  row_range range{};
};

/// Returns the answer to a request.
feeder_decision decide(const feeder_request& request, const feeder_rules& rules);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/feeder_requests.inl>
#endif
