// Options for names that begin with s3:// and gs://, as members of remote_options.
//
//   mr::remote({.s3 = {.region = "eu-west-1", .profile = "train"}});
//   mr::remote({.s3 = {.endpoint = "http://127.0.0.1:9000"}});   // another server with the protocol of S3
//   mr::remote({.gs = {.bearer_token = [] { return token_of_my_own(); }}});
//
// Millrace uses the first keys it finds in this order: `.credentials`; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the
// profile files, including assumed roles; a web identity, AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN; a container's
// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI; the metadata of an EC2 instance, with a timeout of one second. A
// profile in the options has precedence over the environment. Keys are renewed five minutes before they expire.
// A refusal of keys is treated as transient, because key files are often replaced a few seconds late, or written in
// steps. Searches are repeated after 1, 2, 4, 8, 16, 16, ... s, and end after remote_retries::limit. If the store has
// never accepted keys, searches end after 7 s, or at once if the keys are from the environment.
// Errors: setup_error at the first request if no keys are found. Threads: a callable may be called on any thread, but
// on one thread at a time.
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
  std::string session_token{};   ///< required for keys that expire
  std::optional<std::chrono::system_clock::time_point> expires{};   ///< empty: never
};

/// Options for s3:// names.
struct s3_options {
  std::string region{};     ///< empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's region, us-east-1
  std::string endpoint{};   ///< empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's endpoint, Amazon's
  std::string profile{};    ///< empty: AWS_PROFILE, "default"
  bool anonymous = false;   ///< sends no keys, for public buckets; AWS_NO_SIGN_REQUEST=true does the same
  /// Whether URLs have the bucket in the path instead of in the host name. Empty: in the path if an endpoint is set, or
  /// if the bucket's name cannot be part of a host name with a certificate.
  std::optional<bool> path_style{};
  bool requester_pays = false;   ///< agrees to pay for reading a requester-pays bucket
  /// Returns keys, which have precedence over all other sources. Millrace calls it again before the keys expire.
  std::function<s3_credentials()> credentials{};
};

/// Options for gs:// names. Without options, Millrace uses the first of these that exists: GOOGLE_OAUTH_ACCESS_TOKEN;
/// the HMAC key in GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY; the key file that GOOGLE_APPLICATION_CREDENTIALS names;
/// the key file of `gcloud auth application-default login`; the metadata of a Compute Engine instance, with a timeout
/// of one second.
struct gs_options {
  std::string endpoint{};   ///< empty: STORAGE_EMULATOR_HOST, https://storage.googleapis.com
  bool anonymous = false;   ///< sends no keys, for public buckets
  std::function<std::string()> bearer_token{};   ///< returns a valid OAuth 2 token
  std::function<s3_credentials()> hmac_key{};    ///< returns an HMAC key for the XML API
};

}}  // namespace millrace
