// Builds requests to the XML API of Google Cloud Storage. A request contains a bearer token, or an AWS signature that
// was computed with an HMAC key.
//
//   mr::detail::gs_access access({.bearer_token = [] { return token_of_my_own(); }}, env);
//   access.address("GET", name, "").url;     // https://storage.googleapis.com/BUCKET/KEY
//
// Errors: setup_error if the endpoint is not a URL, or if keys are missing; io_error if a response of the metadata
// server is invalid. Messages contain no secrets. Threads: any thread.
// Source: "XML API overview" and "About VM metadata" of Google Cloud's documentation.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/s3_options.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Access to objects by Google's protocol.
class gs_access final : public object_access {
 public:
  gs_access(gs_options options, key_environment env, key_search_options search_options = {})
      : options_(std::move(options)),
        env_(std::move(env)),
        keys_([this] { return find_keys(); },
              {.now_seconds = env_.now_seconds, .search_options = std::move(search_options)}) {}

  addressed_request address(std::string_view method, const object_url& object, std::string_view query) override;

  void accepted(const addressed_request& sent) override {
    if (!sent.origin.empty()) keys_.accepted(sent.keys);
  }

  remedy handle_refusal(const object_url&, const addressed_request& sent, const store_answer& answer) override;

  std::int64_t now_seconds() const override { return env_.now_seconds(); }

 private:
  /// Returns whether requests go to an emulator, which needs no keys.
  bool is_emulated() const;
  std::string endpoint() const;
  /// Returns keys that consist only of a token. The token is sent in a header without a signature.
  static provided_keys of_token(std::string token, std::int64_t expires_seconds, const char* origin);
  static provided_keys as_fixed(provided_keys keys);
  provided_keys find_keys() const;
  std::optional<provided_keys> from_instance() const;

  const gs_options options_;
  const key_environment env_;
  key_provider keys_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/gs_access.inl>
#endif
