// Definitions for request_addresses.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/request_addresses.hpp>

#include <millrace/adapt/remote/store/curl_fetch.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string without_secrets(std::string_view name) {
  if (!is_web_name(name)) return std::string(name);
  const url_parts parts(name);
  const std::size_t at = parts.host.rfind('@');
  std::string plain = std::string(parts.scheme) + "://" +
                      std::string(at == std::string_view::npos ? parts.host : parts.host.substr(at + 1)) +
                      std::string(parts.path);
  return parts.query.empty() ? plain : plain + "?...";
}

/// Returns a URL that can be sent: without a fragment, and with encoded blanks and non-ASCII bytes.
MILLRACE_INLINE std::string request_url(std::string_view name) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string url;
  for (const char c : name.substr(0, name.find('#'))) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f) url += c;
    else url.append({'%', digits[byte >> 4], digits[byte & 15]});
  }
  return url;
}

MILLRACE_INLINE request_addresses::request_addresses(const remote_options& o)
    : headers_(o.headers),
      has_current_headers_(o.current_headers != nullptr),
      stores_({.s3 = o.s3, .gs = o.gs, .search_options = search_options_of(o)},
              process_environment(curl_fetch({.ca_file = o.ca_file}))),
      web_keys_([ask = o.current_headers] { return keys_of_web(ask()); },
                {.now_seconds = process_environment({}).now_seconds, .search_options = search_options_of(o)}) {}

MILLRACE_INLINE addressed_request request_addresses::address(const std::string& name) {
  if (is_object_url(name)) return stores_.address("GET", name);
  if (!is_web_name(name))
    throw setup_error("mr::remote() does not support this kind of name: got " + printable(name) +
                          ", expected http://, https://, s3:// or gs://",
                      "Correct the name, or omit .storage for local files", {.stage = "remote", .shard = name});
  addressed_request request{.url = request_url(name), .headers = headers_};
  if (!has_current_headers_) return request;
  provided_keys provided = web_keys_.get();
  request.headers.insert(request.headers.end(), provided.keys.headers.begin(), provided.keys.headers.end());
  request.keys = std::move(provided.keys);
  request.origin = std::move(provided.origin);
  return request;
}

MILLRACE_INLINE addressed_request request_addresses::redirected(const std::string& name, const std::string& target) {
  addressed_request sent = address(name);
  // The headers must be sent only to the host in the name.
  if (url_parts(sent.url).host != url_parts(target).host) sent.headers.clear();
  sent.url = target;
  return sent;
}

MILLRACE_INLINE void request_addresses::accepted(const std::string& name, const addressed_request& sent) {
  if (is_object_url(name)) return stores_.accepted(name, sent);
  if (!sent.origin.empty()) web_keys_.accepted(sent.keys);
}

MILLRACE_INLINE remedy request_addresses::handle_refusal(const std::string& name, const addressed_request& sent,
                                                         const small_answer& answer) {
  if (is_object_url(name)) return stores_.handle_refusal(name, sent, answer);
  if (sent.origin.empty() || (answer.status != 401 && answer.status != 403)) return {};
  return web_keys_.refused(sent.keys);
}

MILLRACE_INLINE io_error request_addresses::failure(const std::string& name, const addressed_request& sent,
                                                    const small_answer& answer, const std::string& attempted) const {
  if (is_object_url(name)) return stores_.failure(name, sent, answer, attempted);
  const std::string hint = answer.status == 401 || answer.status == 403
                               ? "Send the required authorization with remote_options::headers, or ::current_headers "
                                 "for a token that expires"
                               : "Open the address in a browser, or with curl -I";
  return {"the server refuses a request: got status " + std::to_string(answer.status) + refusal_message(answer) +
              ", expected 206" + attempted,
          hint,
          {.stage = "remote", .shard = without_secrets(name)}};
}

MILLRACE_INLINE std::string request_addresses::refusal_message(const small_answer& answer) {
  const store_answer error = read_store_answer(answer);
  if (!error.code.empty())
    return " (" + printable(error.code + (error.sentence.empty() ? "" : ": " + error.sentence), 300) + ")";
  // An HTML page is less useful than the status.
  const std::string kind = http_lower(header_value(answer.headers, "content-type"));
  const std::string_view text = trimmed_http(answer.body);
  if (text.empty() || text[0] == '<' || !(kind.starts_with("text/plain") || kind.find("json") != std::string::npos))
    return {};
  return " (" + printable(text.substr(0, text.find('\n')), 200) + ")";
}

MILLRACE_INLINE std::vector<std::string> request_addresses::list(const std::string& prefix) {
  if (!is_object_url(prefix))
    throw setup_error("web servers cannot list their files: got " + printable(without_secrets(prefix)),
                      "Write the names with braces, like train-{000..146}.tar", {.stage = "remote"});
  return stores_.list(prefix);
}

MILLRACE_INLINE credential_search_options request_addresses::search_options_of(const remote_options& o) {
  return {.retry_seconds = o.retry.attempts > 1 ? o.retry.limit.count() : 0, .notice = o.notice};
}

MILLRACE_INLINE provided_keys request_addresses::keys_of_web(header_list headers) {
  for (const auto& [name, value] : headers)
    if (name.empty() || (name + value).find_first_of("\r\n") != std::string::npos)
      throw setup_error("remote_options::current_headers returned an invalid header: its name is empty, or it contains "
                        "a line break",
                        "Return headers with a name and without line breaks", {.stage = "remote"});
  return {.keys = {.headers = std::move(headers)}, .origin = "remote_options::current_headers"};
}

}}}   // namespace millrace::detail
