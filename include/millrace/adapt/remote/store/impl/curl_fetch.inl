// Definitions for curl_fetch.hpp.
#pragma once

#include <millrace/adapt/remote/store/curl_fetch.hpp>

#include <millrace/adapt/remote/store/curl_handle.hpp>
#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/base/error.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A request in progress, and its response.
struct curl_exchange {
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  small_answer answer{};
  bool is_long = false;
  char problem[CURL_ERROR_SIZE] = {};

  [[noreturn]] void fail(const small_request& request, CURLcode code) const {
    const url_parts url(request.url);
    const std::string what = problem[0] != '\0' ? printable(problem, 200) : curl_easy_strerror(code);
    throw io_error(
        "a request to " + printable(std::string(url.scheme) + "://" + std::string(url.host)) + " failed: " +
            (is_long ? "the answer is longer than 64 MiB"
                     : "no answer within " + std::to_string(static_cast<long>(request.seconds)) + " s (" + what + ")"),
        "Check the address, the network and its proxies", {.stage = "remote"});
  }

  static std::size_t take_body(char* data, std::size_t, std::size_t count, void* to) noexcept {
    auto& t = *static_cast<curl_exchange*>(to);
    t.is_long = t.answer.body.size() + count > max_bytes;
    if (t.is_long) return 0;
    try {
      t.answer.body.append(data, count);
    } catch (...) {
      return 0;   // exceptions must not propagate through libcurl's frames
    }
    return count;
  }

  static std::size_t take_header(char* data, std::size_t, std::size_t count, void* to) noexcept {
    auto& t = *static_cast<curl_exchange*>(to);
    const std::string_view line(data, count);
    try {
      const std::size_t colon = line.find(':');
      // Drops the headers of a proxy or of an interim response.
      if (line.starts_with("HTTP/")) t.answer.headers.clear();
      else if (colon != std::string_view::npos && t.answer.headers.size() < 1'000)
        t.answer.headers.emplace_back(trimmed_http(line.substr(0, colon)), trimmed_http(line.substr(colon + 1)));
    } catch (...) {
      return 0;
    }
    return count;
  }

  static bool is_on_link(const std::string& url) {
    const std::string_view host = url_parts(url).host;
    return host.starts_with("169.254.") || host.starts_with("[fd00:ec2:");
  }

  CURLcode send(const small_request& request, const std::string& ca_file) {
    curl_easy handle;
    curl_headers headers;
    for (const auto& [name, value] : request.headers) headers.add(name + ": " + value);
    headers.add("Expect:");   // sends a body immediately, without waiting for a confirmation
    const auto milliseconds = static_cast<long>(1'000 * request.seconds);
    handle.set(CURLOPT_ERRORBUFFER, problem);
    handle.set(CURLOPT_URL, request.url.c_str());
    handle.set(CURLOPT_PATH_AS_IS, 1L);   // keys may contain "." and ".." between slashes
    handle.set(CURLOPT_PROTOCOLS_STR, "http,https");
    handle.set(CURLOPT_HTTPHEADER, headers.get());
    handle.set(CURLOPT_NOSIGNAL, 1L);
    handle.set(CURLOPT_TIMEOUT_MS, milliseconds);
    handle.set(CURLOPT_CONNECTTIMEOUT_MS, std::min(milliseconds, 10'000L));
    handle.set(CURLOPT_WRITEFUNCTION, &curl_exchange::take_body);
    handle.set(CURLOPT_WRITEDATA, this);
    handle.set(CURLOPT_HEADERFUNCTION, &curl_exchange::take_header);
    handle.set(CURLOPT_HEADERDATA, this);
    if (!ca_file.empty()) handle.set(CURLOPT_CAINFO, ca_file.c_str());
    if (is_on_link(request.url)) handle.set(CURLOPT_PROXY, "");
    if (request.method == "HEAD") {
      handle.set(CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
      handle.set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      handle.set(CURLOPT_POSTFIELDS, request.body.c_str());
      handle.set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    const CURLcode code = curl_easy_perform(handle.get());
    long status = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    return code;
  }
};

MILLRACE_INLINE small_answer curl_fetch::operator()(const small_request& request) const {
  // Never cleans up libcurl, because other parts of the program may use it.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  for (int attempt = 1;; ++attempt) {
    curl_exchange t;
    const CURLcode code = ready == CURLE_OK ? t.send(request, settings_.ca_file) : ready;
    if (code == CURLE_OK) return std::move(t.answer);
    if (attempt >= request.attempts || code == CURLE_WRITE_ERROR) t.fail(request, code);
    std::this_thread::sleep_for(std::chrono::milliseconds(100 << std::min(attempt, 6)));
  }
}

}}}   // namespace millrace::detail
