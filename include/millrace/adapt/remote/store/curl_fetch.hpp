// Sends small requests with libcurl, one at a time, and waits for their responses.
//
//   const mr::detail::small_fetch fetch = mr::detail::curl_fetch({.ca_file = ""});
//   const auto answer = fetch({.url = "http://169.254.169.254/latest/meta-data/", .seconds = 1, .attempts = 1});
//
// Needs libcurl (link with -lcurl). Redirects are not followed, because a signature is valid for only one host. The
// proxy settings of the environment are used, except for link-local addresses, such as 169.254.169.254.
// Errors: io_error if no response arrives, or if the response is larger than 64 MiB. The error contains only the scheme
// and the host of the URL.
// Threads: any thread. Each call has its own connection.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>

#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A small_fetch that uses libcurl.
class curl_fetch {
 public:
  struct settings {
    std::string ca_file{};   ///< file of CA certificates; if empty, the system's CA certificates are used
  };

  explicit curl_fetch(settings s) : settings_(std::move(s)) {}

  small_answer operator()(const small_request& request) const;

 private:
  settings settings_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/curl_fetch.inl>
#endif
