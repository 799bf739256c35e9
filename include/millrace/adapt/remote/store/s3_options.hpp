// Options of names that begin with s3:// and gs://, parts of remote_options.
//
//   mr::remote({.s3 = {.region = "eu-west-1", .profile = "train"}});
//   mr::remote({.s3 = {.endpoint = "http://127.0.0.1:9000"}});                   // another server that speaks S3
//   mr::remote({.gs = {.bearer_token = [] { return token_of_my_own(); }}});
//
// Millrace uses the first keys it finds in this order: `.credentials`; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the
// profile files, including assumed roles; a web identity, AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN; a container's
// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI; the metadata of an EC2 instance, for one second. A profile in
// the options has precedence over the environment. Keys that expire are renewed five minutes earlier.
// A refusal of keys is transient, since key files are often replaced some seconds late, or written in steps. Searches
// are repeated after 1, 2, 4, 8, 16, 16, ... s, and end after remote_retries::limit. For keys that the store never
// accepted they end after 7 s, and at once if the keys are from the environment.
// Errors: setup_error at the first request if there are no keys. Threads: values; any thread calls the callables, one
// at a time.
#pragma once

#include <millrace/base/version.hpp>

#include <condition_variable>   // std::chrono's time points; <chrono> adds a calendar
#include <functional>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Keys of an object store.
struct s3_credentials {
  std::string access_key_id{}, secret_access_key{};
  std::string session_token{};   ///< of keys that expire
  std::optional<std::chrono::system_clock::time_point> expires{};   ///< empty: never
};

/// Options of s3:// names.
struct s3_options {
  std::string region{};     ///< empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's, us-east-1
  std::string endpoint{};   ///< empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's, Amazon's own
  std::string profile{};    ///< empty: AWS_PROFILE, "default"
  bool anonymous = false;   ///< sends no keys, for public buckets; AWS_NO_SIGN_REQUEST=true does the same
  /// Whether the bucket is in the path instead of in the host name. Empty: it is in the path if an endpoint is set, or
  /// if its name cannot be part of a host name with a certificate.
  std::optional<bool> path_style{};
  bool requester_pays = false;   ///< agrees to pay for reading a requester-pays bucket
  /// Returns keys that replace all other sources; called again before they expire.
  std::function<s3_credentials()> credentials{};
};

/// Options of gs:// names. Without options, Millrace uses the first of these that exists: GOOGLE_OAUTH_ACCESS_TOKEN;
/// the HMAC key in GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY; the key file in GOOGLE_APPLICATION_CREDENTIALS; that of
/// `gcloud auth application-default login`; the metadata of a Compute Engine instance, for one second.
struct gs_options {
  std::string endpoint{};   ///< empty: STORAGE_EMULATOR_HOST, https://storage.googleapis.com
  bool anonymous = false;   ///< sends no keys, for public buckets
  std::function<std::string()> bearer_token{};   ///< returns a valid OAuth 2 token
  std::function<s3_credentials()> hmac_key{};    ///< returns an HMAC key for the XML API
};

}}  // namespace millrace
