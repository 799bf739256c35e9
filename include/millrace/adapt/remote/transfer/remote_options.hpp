// Options of mr::remote().
//
//   mr::remote({.requests = 128, .s3 = {.region = "eu-west-1"}});
//   mr::remote({.cache = {.folder = "/scratch/mr", .bytes = 500'000'000'000}});
//   mr::remote({.headers = {{"Authorization", "Bearer " + token}}, .retry = {.limit = std::chrono::minutes(10)}});
//
// The defaults suit shards of 100 MB to some GB in a store of the same region.
// Errors: mr::remote() throws setup_error for a value that is out of range. Threads and lifetime: values.
#pragma once

#include <millrace/adapt/remote/store/s3_options.hpp>
#include <millrace/io/cache/cache_options.hpp>

#include <condition_variable>   // std::chrono's durations; <chrono> adds a calendar
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Number of attempts and pauses of a request.
struct remote_retries {
  int attempts = 10;                                 ///< attempts without progress
  std::chrono::duration<double> limit{180};          ///< without progress, or with refused keys
  std::chrono::duration<double> first_pause{0.2};    ///< the pause before the second attempt is between 0 and this
  std::chrono::duration<double> longest_pause{20};   ///< limit of later pauses, which doubles each time
};

/// When a late request gets a concurrent second one, on a new connection; the first response is used.
struct remote_hedging {
  double share = 0.05;                           ///< at most this share of all requests; 0: none
  std::chrono::duration<double> least_wait{1};   ///< a request that waits less for its first byte is not late
};

/// Options of remote().
struct remote_options {
  std::size_t requests = 64;                              ///< requests in flight
  std::size_t part_bytes = std::size_t{8} << 20;          ///< size of one request
  std::size_t memory_bytes = std::size_t{256} << 20;      ///< limit of the prefetched bytes
  std::vector<std::pair<std::string, std::string>> headers{};   ///< sent with each http:// and https:// request
  /// Returns further headers for http:// and https://, such as a token that expires. Called on the first request, and
  /// again after 401 and 403 as for the keys of stores (s3_options.hpp). Only one thread at a time calls it.
  std::function<std::vector<std::pair<std::string, std::string>>()> current_headers{};
  /// Receives each notice, such as refused keys, on any thread. Empty: lines on stderr.
  notice_function notice{};
  std::string ca_file{};                                  ///< certificates of authorities; empty: the system's
  bool http2 = false;   ///< shares connections; slower for large objects, as each connection has a speed limit
  std::chrono::duration<double> connect_limit{10};        ///< limit of establishing a connection
  std::chrono::duration<double> stall_limit{20};          ///< limit of the time below the following speed
  std::uint64_t stall_bytes_per_second = 1'000;
  std::optional<std::uint64_t> bytes_per_second{}, requests_per_second{};   ///< limits of all requests together
  remote_retries retry{};
  remote_hedging hedge{};
  s3_options s3{};   ///< of names that begin with s3://
  gs_options gs{};   ///< of names that begin with gs://
  cache_options cache{};   ///< with .folder: caches the bytes on a local disk
};

}}  // namespace millrace
