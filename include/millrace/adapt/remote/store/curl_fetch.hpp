// Sends small requests by libcurl, one after the other, and waits for their answers.
//
//   const mr::detail::small_fetch fetch = mr::detail::curl_fetch({.ca_file = ""});
//   const auto answer = fetch({.url = "http://169.254.169.254/latest/meta-data/", .seconds = 1, .attempts = 1});
//
// Needs libcurl; link with -lcurl. Redirects are not followed: what is signed is signed for one host. Proxies are those
// of the environment, but addresses of this machine's own link are asked directly.
// Errors: io_error if no answer comes, or one of more than 64 MiB. It names the URL without its query.
// Threads: any; each call has a connection of its own.
#pragma once

#if !__has_include(<curl/curl.h>)
#error "millrace: libcurl is not installed: apt-get install libcurl4-openssl-dev"
#endif
#include <curl/curl.h>

#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/error.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Sends a request, and takes its answer.
class curl_fetch {
 public:
  struct settings {
    std::string ca_file{};   ///< empty: the system's certificates
  };

  explicit curl_fetch(settings chosen) : settings_(std::move(chosen)) {}

  small_answer operator()(const small_request& request) const {
    // Never cleaned up: other parts of the program may use libcurl, too.
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    for (int attempt = 1;; ++attempt) {
      transfer t;
      const CURLcode code = ready == CURLE_OK ? send(request, t) : ready;
      if (code == CURLE_OK) return std::move(t.answer);
      if (attempt >= request.attempts || code == CURLE_WRITE_ERROR) fail(request, code, t);
      std::this_thread::sleep_for(std::chrono::milliseconds(100 << std::min(attempt, 6)));
    }
  }

 private:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  struct transfer {
    small_answer answer{};
    bool is_long = false;
    char problem[CURL_ERROR_SIZE] = {};
  };
  struct closer {
    void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
  };

  [[noreturn]] static void fail(const small_request& request, CURLcode code, const transfer& t) {
    const url_parts url(request.url);
    const std::string what = t.is_long ? "more than 64 MiB"
                             : t.problem[0] != '\0' ? printable(t.problem, 200) : curl_easy_strerror(code);
    throw io_error("a request to " + printable(std::string(url.scheme) + "://" + std::string(url.host)) +
                       " fails: got no answer (" + what + "), expected one within " +
                       std::to_string(static_cast<long>(request.seconds)) + " s",
                   "Check the address, the network and its proxies", {.stage = "remote"});
  }

  static std::size_t take_body(char* data, std::size_t, std::size_t count, void* to) noexcept {
    auto& t = *static_cast<transfer*>(to);
    t.is_long = t.answer.body.size() + count > max_bytes;
    if (t.is_long) return 0;
    try {
      t.answer.body.append(data, count);
    } catch (...) {
      return 0;   // exceptions cannot pass libcurl's frames
    }
    return count;
  }

  static std::size_t take_header(char* data, std::size_t, std::size_t count, void* to) noexcept {
    auto& t = *static_cast<transfer*>(to);
    const std::string_view line(data, count);
    try {
      const std::size_t colon = line.find(':');
      if (line.starts_with("HTTP/")) t.answer.headers.clear();   // behind an answer of a proxy, or an interim one
      else if (colon != std::string_view::npos && t.answer.headers.size() < 1'000)
        t.answer.headers.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
    } catch (...) {
      return 0;
    }
    return count;
  }

  static bool is_on_link(const std::string& url) {
    const std::string_view host = url_parts(url).host;
    return host.starts_with("169.254.") || host.starts_with("[fd00:ec2:");
  }

  CURLcode send(const small_request& request, transfer& t) const {
    const std::unique_ptr<CURL, closer> handle(curl_easy_init());
    if (!handle) throw std::bad_alloc();
    std::unique_ptr<curl_slist, closer> headers;
    const auto add = [&](const std::string& line) {
      curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
      if (!longer) throw std::bad_alloc();
      static_cast<void>(headers.release());
      headers.reset(longer);
    };
    for (const auto& [name, value] : request.headers) add(name + ": " + value);
    add("Expect:");   // a small body is sent at once
    CURL* const h = handle.get();
    const auto milliseconds = static_cast<long>(1'000 * request.seconds);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t.problem);
    curl_easy_setopt(h, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);   // keys may have segments of dots
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, milliseconds);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, std::min(milliseconds, 10'000L));
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, &curl_fetch::take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, &t);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, &curl_fetch::take_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, &t);
    if (!settings_.ca_file.empty()) curl_easy_setopt(h, CURLOPT_CAINFO, settings_.ca_file.c_str());
    if (is_on_link(request.url)) curl_easy_setopt(h, CURLOPT_PROXY, "");
    if (request.method == "HEAD") {
      curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
      curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      curl_easy_setopt(h, CURLOPT_POSTFIELDS, request.body.c_str());
      curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    const CURLcode code = curl_easy_perform(h);
    long status = 0;
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    t.answer.status = static_cast<int>(status);
    return code;
  }

  settings settings_;
};

}}}  // namespace millrace::detail
