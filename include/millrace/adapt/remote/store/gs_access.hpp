// Asks Google Cloud Storage for objects, by its XML API: with a bearer token, or an HMAC key and Amazon's signatures.
//
//   mr::detail::gs_access access({.bearer_token = [] { return token_of_my_own(); }}, around);
//   access.address("GET", name, "").url;     // https://storage.googleapis.com/BUCKET/KEY
//
// Errors: setup_error for an endpoint that is not a URL, and where there are no keys; io_error for a metadata server
// that answers something else than a token. No message holds a secret. Threads: any.
// Source: "XML API overview" and "About VM metadata" of Google Cloud's documentation.
#pragma once

#include <millrace/adapt/remote/store/google_key_file.hpp>
#include <millrace/adapt/remote/store/s3_access.hpp>
#include <millrace/base/json_objects.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Google's protocol.
class gs_access final : public object_access {
 public:
  gs_access(gs_options options, surroundings around, key_patience patience = {})
      : options_(std::move(options)), around_(std::move(around)),
        keys_([this] { return find_keys(); },
              {.now_seconds = around_.now_seconds, .patience = std::move(patience)}) {}

  addressed_request address(std::string_view method, const object_url& object, std::string_view query) override {
    addressed_request made{.region = "auto"};
    made.url = endpoint() + '/' + object.bucket + '/' + uri_encoded(object.key, slash::kept);
    if (!query.empty()) made.url.append("?").append(query);
    if (options_.anonymous || is_emulated()) return made;
    found_keys found = keys_.get();
    made.keys = std::move(found.keys);
    made.origin = std::move(found.origin);
    if (made.keys.access_key_id.empty())
      made.headers.emplace_back("Authorization", "Bearer " + made.keys.session_token);
    else
      made.headers = signature_v4{.credentials = made.keys, .region = made.region}.headers(
          {.method = method, .url = made.url}, around_.now_seconds());
    return made;
  }

  void accepted(const addressed_request& sent) override {
    if (!sent.origin.empty()) keys_.accepted(sent.keys);
  }

  remedy heal(const object_url&, const addressed_request& sent, const store_answer& said) override {
    if (sent.origin.empty() || !said.is_about_keys()) return {};
    return keys_.refused(sent.keys);
  }

  std::int64_t now_seconds() const override { return around_.now_seconds(); }

 private:
  /// An emulator takes any keys, or none.
  bool is_emulated() const {
    return options_.endpoint.empty() && !options_.bearer_token && !options_.hmac_key &&
           !around_.variable("STORAGE_EMULATOR_HOST").empty();
  }

  std::string endpoint() const {
    std::string given = options_.endpoint;
    if (given.empty()) given = around_.variable("STORAGE_EMULATOR_HOST");
    if (given.empty()) return "https://storage.googleapis.com";
    if (given.find("://") == std::string::npos) given = "http://" + given;
    return checked_endpoint(given, "gs_options::endpoint or STORAGE_EMULATOR_HOST");
  }

  /// A token is sent as it is in a header.
  static found_keys of_token(std::string token, std::int64_t expires_seconds, const char* origin) {
    if (token.empty() || token.find_first_of(" \r\n") != std::string::npos)
      throw setup_error(std::string(origin) + " gives a wrong bearer token: expected one word",
                        "Give it without blanks", {.stage = "remote"});
    return {.keys = {.session_token = std::move(token), .expires_seconds = expires_seconds}, .origin = origin};
  }

  static found_keys fixed(found_keys found) {
    found.is_fixed = true;
    return found;
  }

  found_keys find_keys() const {
    // A user's token is asked for each minute: only the user knows when it expires.
    if (options_.bearer_token)
      return of_token(options_.bearer_token(), around_.now_seconds() + key_provider::pause_seconds,
                      "gs_options::bearer_token");
    if (options_.hmac_key) return keys_of_user(options_.hmac_key(), "gs_options::hmac_key");
    if (std::string token = around_.variable("GOOGLE_OAUTH_ACCESS_TOKEN"); !token.empty())
      return fixed(of_token(std::move(token), signing_keys::never, "GOOGLE_OAUTH_ACCESS_TOKEN"));
    signing_keys keys{.access_key_id = around_.variable("GS_ACCESS_KEY_ID"),
                      .secret_access_key = around_.variable("GS_SECRET_ACCESS_KEY")};
    if (!keys.access_key_id.empty() && !keys.secret_access_key.empty())
      return {.keys = std::move(keys), .origin = "the environment", .is_fixed = true};
    if (auto found = google_key_file(around_).token()) return *found;
    if (auto found = from_instance()) return *found;
    throw no_keys_error(
        "keys for gs:// names are missing: neither the environment has some (GOOGLE_OAUTH_ACCESS_TOKEN, or "
        "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY), nor a key file of gcloud, nor the instance",
        "Set GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token), or gs_options::anonymous for a public bucket",
        {.stage = "remote"});
  }

  std::optional<found_keys> from_instance() const {
    constexpr const char* who = "the instance's metadata";
    std::string host = around_.variable("GCE_METADATA_HOST");
    if (host.empty()) host = "169.254.169.254";
    small_answer answer;
    try {
      answer = around_.fetch({.url = "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token",
                              .headers = {{"Metadata-Flavor", "Google"}}, .seconds = 1, .attempts = 1});
    } catch (const io_error&) {
      return std::nullopt;   // this is not an instance
    }
    // Other clouds have other servers at this address.
    if (answer.status != 200 || header_value(answer.headers, "Metadata-Flavor") != "Google") return std::nullopt;
    std::string token;
    std::uint64_t lasts = 0;
    try {
      json_objects(answer.body, who).for_each([&](const auto& members) {
        for (const auto& m : members) {
          if (m.key == "access_token") token = m.text;
          else if (m.key == "expires_in") lasts = m.number.value_or(0);
        }
      });
    } catch (const data_error&) {
      token.clear();
    }
    if (token.empty() || lasts == 0 || lasts > 1'000'000)
      throw io_error(std::string(who) + " gives no token: its answer cannot be read",
                     "Check the service account of this instance", {.stage = "remote"});
    return of_token(std::move(token), around_.now_seconds() + static_cast<std::int64_t>(lasts), who);
  }

  const gs_options options_;
  const surroundings around_;
  key_provider keys_;
};

}}}  // namespace millrace::detail
