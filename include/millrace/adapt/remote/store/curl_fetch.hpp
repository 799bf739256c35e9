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

#include <millrace/adapt/remote/store/small_http.hpp>

#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Sends a request, and takes its answer.
class curl_fetch {
 public:
  struct settings {
    std::string ca_file{};   ///< empty: the system's certificates
  };

  explicit curl_fetch(settings chosen) : settings_(std::move(chosen)) {}

  small_answer operator()(const small_request& request) const;

 private:
  settings settings_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/curl_fetch.inl>
#endif
