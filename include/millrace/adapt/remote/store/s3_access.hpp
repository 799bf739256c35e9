// Builds requests for objects in Amazon S3, and in other stores with the same protocol.
//
//   mr::detail::s3_access access({.region = "eu-west-1"}, env);
//   access.address("GET", name, "").url;     // https://BUCKET.s3.eu-west-1.amazonaws.com/KEY
//
// If a response shows that a bucket is in another region than the one in the settings, later requests for this bucket
// use its own region. The first request reads the profile files and searches for access keys.
// Errors: setup_error if the endpoint is not a URL, or if access keys are missing. Threads: any thread.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/s3_options.hpp>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the endpoint without its trailing slash. If the endpoint is not the URL of a server, throws a setup_error
/// that names `option`.
std::string checked_endpoint(std::string endpoint, const char* option);
provided_keys keys_of_user(const s3_credentials& credentials, const char* option);

/// Access to objects by Amazon's protocol.
class s3_access final : public object_access {
 public:
  s3_access(s3_options options, key_environment env, credential_search_options search_options = {})
      : options_(std::move(options)),
        env_(std::move(env)),
        keys_([this] { return find_keys(); },
              {.now_seconds = env_.now_seconds, .search_options = std::move(search_options)}) {}

  addressed_request address(std::string_view method, const object_url& object, std::string_view query) override;

  void accepted(const addressed_request& sent) override {
    if (!sent.origin.empty()) keys_.accepted(sent.keys);
  }

  remedy handle_refusal(const object_url& object, const addressed_request& sent, const store_answer& answer) override;

  std::int64_t now_seconds() const override { return env_.now_seconds(); }

 private:
  static constexpr std::string_view label_characters = "abcdefghijklmnopqrstuvwxyz0123456789-";

  /// The settings that result from options, environment and profile.
  struct settings {
    bool ready = false, anonymous = false;
    std::string region{}, endpoint{};
  };

  /// Returns the settings. Stores keys in `provided`, unless requests are anonymous.
  settings settled_with(std::optional<provided_keys>& provided);
  settings settled();

  static bool is_region(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 63 && text.find_first_not_of(label_characters) == std::string_view::npos;
  }

  static std::string first_of(const std::string& a, const std::string& b, const std::string& c) {
    return !a.empty() ? a : !b.empty() ? b : c;
  }

  std::string region_of(const std::string& bucket, const settings& s);
  /// Returns the part of the URL before the object's key, including the slash.
  std::string base_of(const std::string& bucket, const std::string& region, const settings& s) const;
  provided_keys find_keys();

  const s3_options options_;
  const key_environment env_;
  std::mutex mutex_;   // guards settings_, had_keys_ and regions_
  settings settings_;
  bool had_keys_ = false;
  std::map<std::string, std::string> regions_;   // regions of buckets that are not in the region of the settings
  credential_provider keys_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/s3_access.inl>
#endif
