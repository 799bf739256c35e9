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

MILLRACE_INLINE std::string metrics_text(const feeder_metrics& m) {
  std::string text;
  const auto add = [&text](const char* name, const char* type, const char* help, const std::string& value) {
    const std::string full = std::string("millrace_feeder_") + name;
    text += "# HELP " + full + " " + help + "\n# TYPE " + full + " " + type + "\n" + full + " " + value + "\n";
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  add("rows_total", "counter", "Computed rows.", number(m.rows));
  add("failed_rows_total", "counter", "Rows with a reason instead of bytes.", number(m.failed_rows));
  add("sent_bytes_total", "counter", "Bytes of the bodies of completed answers.", number(m.sent_bytes));
  add("refused_requests_total", "counter", "Requests with a status of 400 to 413.", number(m.refused_requests));
  add("busy_requests_total", "counter", "Requests with the status 429 or 503.", number(m.busy_requests));
  add("closed_connections_total", "counter", "Connections of clients that received too slowly.",
      number(m.closed_connections));
  add("busy_seconds_total", "counter", "Time of all workers together.",
      std::to_string(static_cast<double>(m.busy_ns) / 1e9));
  add("workers", "gauge", "Number of workers.", number(m.workers));
  add("requests", "gauge", "Requests for rows that are computed or sent.", number(m.requests));
  add("max_requests", "gauge", "Maximum of requests.", number(m.max_requests));
  add("draining", "gauge", "1 after SIGTERM.", m.draining ? "1" : "0");
  return text;
}

MILLRACE_INLINE listen_address parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos) host = {};
  const std::optional<std::uint64_t> number = decimal_number(port);
  if (host.empty() || !number || *number > 65'535)
    throw setup_error("the address of a feeder is not valid: got \"" + printable(text, 200) +
                          "\", expected an address and a port of at most 65535",
                      "Write 0.0.0.0:8717, 127.0.0.1:8717 or [::]:8717");
  return {std::string(host), std::string(port)};
}

}}}  // namespace millrace::detail
