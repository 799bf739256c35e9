// Options for names that begin with s3:// and gs://. These options are members of remote_options.
//
//   mr::remote({.s3 = {.region = "eu-west-1", .profile = "train"}});
//   mr::remote({.s3 = {.endpoint = "http://127.0.0.1:9000"}});   // another store with the protocol of S3
//   mr::remote({.gs = {.bearer_token = [] { return token_of_my_own(); }}});
//
// For s3:// names, Millrace uses the first access keys (in this header: keys) that it finds in these sources:
// - the function in `.credentials`
// - the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
// - the profile files, including assumed roles
// - a web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN
// - a container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
// - the metadata of an EC2 instance, with a timeout of one second
//
// If `.profile` is set, the environment variables of the second source are ignored. Keys are renewed five minutes
// before they expire.
// If the store refuses keys, Millrace searches for new keys, because key files are often replaced a few seconds late,
// or written in steps. Searches are repeated with increasing pauses. The searches end when remote_retries::limit has
// passed since the first refusal. If the store has never accepted keys, the searches end after at most 7 s, or at once
// if the keys are from the environment.
// Errors: setup_error at the first request if no keys are found. Threads: Millrace may call the functions in these
// options on any thread, but each function only on one thread at a time.
#pragma once

#include <millrace/base/version.hpp>

#include <condition_variable>   // for std::chrono's time points; <chrono> would also include calendars
#include <functional>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Keys of an object store.
struct s3_credentials {
  std::string access_key_id{}, secret_access_key{};
  std::string session_token{};                                      ///< required for keys that expire
  std::optional<std::chrono::system_clock::time_point> expires{};   ///< empty if the keys do not expire
};

/// Options for s3:// names.
struct s3_options {
  std::string region{};     ///< if empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's region, or us-east-1
  std::string endpoint{};   ///< if empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's endpoint, or Amazon's
  std::string profile{};    ///< if empty: AWS_PROFILE, or "default"
  bool anonymous = false;   ///< sends no keys, for public buckets; AWS_NO_SIGN_REQUEST=true does the same
  /// Whether URLs contain the bucket in the path instead of the host name. By default, the bucket is in the path if an
  /// endpoint is set. The bucket is also in the path if its name contains dots, capitals or other characters that are
  /// not allowed in a part of a host name.
  std::optional<bool> path_style{};
  bool requester_pays = false;   ///< accepts the costs of reading a requester-pays bucket
  /// Returns keys. These keys have precedence over all other sources. Millrace calls the function again before the keys
  /// expire.
  std::function<s3_credentials()> credentials{};
};

/// Options for gs:// names. If neither bearer_token nor hmac_key is set, Millrace uses the first of these sources that
/// exists:
/// - GOOGLE_OAUTH_ACCESS_TOKEN
/// - the HMAC key in GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY
/// - the key file in GOOGLE_APPLICATION_CREDENTIALS
/// - the key file of `gcloud auth application-default login`
/// - the metadata of a Compute Engine instance, with a timeout of one second
struct gs_options {
  std::string endpoint{};                        ///< if empty: STORAGE_EMULATOR_HOST, or https://storage.googleapis.com
  bool anonymous = false;                        ///< sends no keys, for public buckets
  std::function<std::string()> bearer_token{};   ///< returns a valid OAuth 2 token
  std::function<s3_credentials()> hmac_key{};    ///< returns an HMAC key for the XML API
};

}}   // namespace millrace
