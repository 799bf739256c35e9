// Owners of libcurl's handles and header lists.
//
//   mr::detail::require_curl();
//   mr::detail::curl_easy handle;                                 // its destructor closes the handle
//   handle.set(CURLOPT_URL, url.c_str());
//   mr::detail::curl_headers lines;  lines.add("Range: bytes=0-99");
//
// Needs libcurl (link with -lcurl).
// Errors: std::bad_alloc; setup_error if libcurl cannot be initialized. Threads: only one thread at a time may use a
// handle.
#pragma once

#if !__has_include(<curl/curl.h>)
#error "millrace: libcurl is not installed: apt-get install libcurl4-openssl-dev"
#endif
#include <curl/curl.h>

#include <millrace/base/error.hpp>

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Initializes libcurl once per process. Never cleans libcurl up, because other parts of the program may use it.
inline void require_curl() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK)
    throw setup_error(std::string("libcurl cannot start: ") + curl_easy_strerror(ready),
                      "Reinstall libcurl and its libraries", {.stage = "remote"});
}

struct curl_closer {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

struct curl_multi_closer {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};
using curl_multi = std::unique_ptr<CURLM, curl_multi_closer>;

/// The headers of a request.
class curl_headers {
 public:
  void add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_.get(), line.c_str());
    if (!longer) throw std::bad_alloc();
    static_cast<void>(list_.release());
    list_.reset(longer);
  }
  curl_slist* get() const noexcept { return list_.get(); }

 private:
  std::unique_ptr<curl_slist, curl_closer> list_;
};

/// A handle that is used for one request at a time.
class curl_easy {
 public:
  curl_easy() : handle_(curl_easy_init()) {
    if (!handle_) throw std::bad_alloc();
  }

  /// Sets an option. Ignores options that this build of libcurl does not support.
  template <class Value>
  void set(CURLoption option, Value value) noexcept {
    static_cast<void>(curl_easy_setopt(handle_.get(), option, value));
  }
  /// Resets all options. Connections stay open.
  void reset() noexcept { curl_easy_reset(handle_.get()); }
  CURL* get() const noexcept { return handle_.get(); }

 private:
  std::unique_ptr<CURL, curl_closer> handle_;
};

}}}   // namespace millrace::detail
