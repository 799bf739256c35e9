// How the objects of a store are asked for: URL and headers of each attempt, and what heals a refusal.
//
//   auto sent = access.address("GET", name, "");
//   auto answer = fetch({.url = sent.url, .headers = sent.headers});
//   if (answer.status == 200) access.accepted(sent);
//   else act_on(access.heal(name, sent, read_store_answer(answer)));   // address it again, at once or later, or fail
//
// Errors: those of key_provider::get(). Threads: any.
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
  header_list headers{};   ///< to be sent beside those of the request itself
  std::string region{};    ///< for which it is signed
  signing_keys keys{};     ///< or a bearer token, as session_token
  std::string origin{};    ///< where the keys are from; empty: it has none
};

/// A kind of store.
class object_access {
 public:
  object_access() = default;
  object_access(const object_access&) = delete;
  object_access& operator=(const object_access&) = delete;
  virtual ~object_access() = default;

  /// Returns URL and headers of a request; the query is encoded.
  virtual addressed_request address(std::string_view method, const object_url& object, std::string_view query) = 0;
  /// Notes that a request was answered with what it asked for.
  virtual void accepted(const addressed_request& sent) = 0;
  /// Learns from a refusal. Returns whether and when a request that is addressed again may succeed.
  virtual remedy heal(const object_url& object, const addressed_request& sent, const store_answer& said) = 0;
  /// The time of day by which requests are signed.
  virtual std::int64_t now_seconds() const = 0;
};

}}}  // namespace millrace::detail
