// Options of mr::remote().
//
//   mr::remote({.requests = 128, .s3 = {.region = "eu-west-1"}});
//   mr::remote({.cache = {.folder = "/scratch/mr", .bytes = 500'000'000'000}});
//   mr::remote({.headers = {{"Authorization", "Bearer " + token}}, .retry = {.limit = std::chrono::minutes(10)}});
//
// The defaults are suitable for shards of 100 MB to a few GB in a store in the same region.
// Errors: mr::remote() throws setup_error for a value that is out of range. Threads: not synchronized.
#pragma once

#include <millrace/adapt/remote/store/s3_options.hpp>
#include <millrace/io/cache/cache_options.hpp>

#include <condition_variable>   // for std::chrono's durations, without the calendar of <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The maximum number of attempts of a request, and the upper bounds of the random pauses between them. An attempt that
/// delivers a substantial part of its bytes is progress (retry_rule.hpp).
struct remote_retries {
  int attempts = 10;                                 ///< maximum number of attempts without progress
  std::chrono::duration<double> limit{180};          ///< maximum time without progress, or of a search for access keys
  std::chrono::duration<double> first_pause{0.2};    ///< bound of the first pause; the bound doubles with each attempt
  std::chrono::duration<double> longest_pause{20};   ///< largest bound of a pause
};

/// Hedging: if a request is late, a second request is sent on a new connection. The response that arrives first is
/// used.
struct remote_hedging {
  double share = 0.05;                           ///< maximum share of hedged requests; 0 disables hedging
  std::chrono::duration<double> least_wait{1};   ///< a request is late only after this wait for its first byte
};

/// Options of remote().
struct remote_options {
  std::size_t requests = 64;                                    ///< maximum number of requests in flight
  std::size_t part_bytes = std::size_t{8} << 20;                ///< size of one request in bytes
  std::size_t memory_bytes = std::size_t{256} << 20;            ///< maximum number of prefetched bytes
  std::vector<std::pair<std::string, std::string>> headers{};   ///< sent with each http:// and https:// request
  /// Returns additional headers for http:// and https:// names, for example a token that expires. Millrace calls the
  /// function for the first request, and again if a response has status 401 or 403. If the new headers are refused too,
  /// Millrace repeats the call with the pauses and the time limit of a search for access keys (s3_options.hpp). Only
  /// one thread at a time calls the function.
  std::function<std::vector<std::pair<std::string, std::string>>()> current_headers{};
  /// Receives each notice, for example about refused access keys, on any thread. If empty, notices are written to
  /// stderr.
  notice_function notice{};
  std::string ca_file{};   ///< file with CA certificates; if empty, the system's certificates are used
  /// Uses HTTP/2, whose requests share connections. If the speed of each connection is limited, HTTP/2 is slower for
  /// large objects than HTTP/1.1, the default.
  bool http2 = false;
  std::chrono::duration<double> connect_limit{10};   ///< timeout for establishing a connection
  /// If a request is slower than `stall_bytes_per_second` for this time, Millrace ends it and requests the missing
  /// bytes again.
  std::chrono::duration<double> stall_limit{20};
  std::uint64_t stall_bytes_per_second = 1'000;
  /// Limits for all requests together. If empty, requests are not limited.
  std::optional<std::uint64_t> bytes_per_second{}, requests_per_second{};
  remote_retries retry{};
  remote_hedging hedge{};
  s3_options s3{};         ///< options for names that begin with s3://
  gs_options gs{};         ///< options for names that begin with gs://
  cache_options cache{};   ///< if .folder is set, caches objects on a local disk
};

}}   // namespace millrace
