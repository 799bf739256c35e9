// The interface of a kind of object store. Builds requests for objects, and handles refusals.
//
//   auto sent = access.address("GET", name, "");
//   auto answer = fetch({.url = sent.url, .headers = sent.headers});
//   if (answer.status == 200) access.accepted(sent);
//   else act_on(access.handle_refusal(name, sent, read_store_answer(answer)));   // build the request again, or fail
//
// Each attempt gets its own URL and headers. Errors: the errors of key_provider::get(). Threads: any thread.
#pragma once

#include <millrace/adapt/remote/store/key_provider.hpp>
#include <millrace/adapt/remote/store/object_url.hpp>
#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/store_answer.hpp>

#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A request before it is sent.
struct addressed_request {
  std::string url{};
  header_list headers{};   ///< headers to send in addition to the request's own headers
  std::string region{};    ///< the region of the signature
  signing_keys keys{};     ///< the keys of the signature, or a bearer token in session_token
  std::string origin{};    ///< the source of the keys; empty if the request has no keys
};

/// The interface of a kind of store.
class object_access {
 public:
  object_access() = default;
  object_access(const object_access&) = delete;
  object_access& operator=(const object_access&) = delete;
  virtual ~object_access() = default;

  /// Returns URL and headers of a request. `query` must be encoded.
  virtual addressed_request address(std::string_view method, const object_url& object, std::string_view query) = 0;
  /// Records that a request succeeded.
  virtual void accepted(const addressed_request& sent) = 0;
  /// Handles a refusal. Returns whether and when a new request may succeed.
  virtual remedy handle_refusal(const object_url& object, const addressed_request& sent,
                                const store_answer& answer) = 0;
  /// Returns the time that is used for signatures, in seconds since 1970.
  virtual std::int64_t now_seconds() const = 0;
};

}}}  // namespace millrace::detail
