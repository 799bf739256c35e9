// Definitions for feeder_requests.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_requests.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns whether the header contains the token. The time does not depend on the first difference.
MILLRACE_INLINE bool has_token(std::string_view authorization, std::string_view token) noexcept {
  constexpr std::string_view scheme = "Bearer ";
  if (!authorization.starts_with(scheme)) return false;
  authorization.remove_prefix(scheme.size());
  unsigned difference = authorization.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < authorization.size(); ++i)
    difference |= static_cast<unsigned char>(authorization[i]) ^
                  static_cast<unsigned char>(i < token.size() ? token[i] : '\0');
  return difference == 0;
}

MILLRACE_INLINE feeder_decision decide(const feeder_request& request, const feeder_rules& rules) {
  const auto refuse = [](unsigned status, std::string text) {
    return feeder_decision{.status = status, .text = std::move(text) + "\n"};
  };
  if (request.method != "GET") return refuse(405, "got another method, expected GET");
  if (request.has_body) return refuse(413, "got a body, expected none");
  if (request.path == "/healthz") return {.action = feeder_action::health};
  if (!rules.token.empty() && !has_token(request.authorization, rules.token))
    return refuse(401, "the token is wrong or missing: expected the header Authorization: Bearer TOKEN");
  if (request.path == "/metrics") return {.action = feeder_action::metrics};
  if (!request.path.starts_with("/v1/"))
    return refuse(404, "got \"" + printable(request.path, 200) + "\", expected /v1/RUN/hello, /v1/RUN/rows/..., "
                       "/metrics or /healthz");
  const std::string_view rest = request.path.substr(4), run = rest.substr(0, rest.find('/'));
  if (rest.substr(run.size()) == "/hello")
    return {.status = run == rules.run ? 200U : 409U, .text = rules.hello};
  try {
    return {.action = feeder_action::rows,
            .range = parse_rows_path(request.path, {.run = rules.run, .max_rows = rules.max_rows})};
  } catch (const setup_error&) {
    return {.status = 409, .text = rules.hello};
  } catch (const data_error& e) {
    return refuse(400, e.message());
  }
}

}}}  // namespace millrace::detail
