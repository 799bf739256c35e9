// Options of mr::remote().
//
//   mr::remote({.requests = 128, .s3 = {.region = "eu-west-1"}});
//   mr::remote({.cache = {.folder = "/scratch/mr", .bytes = 500'000'000'000}});
//   mr::remote({.headers = {{"Authorization", "Bearer " + token}}, .retry = {.limit = std::chrono::minutes(10)}});
//
// The defaults suit shards of 100 MB to some GB in a store of the same region.
// Errors: mr::remote() throws setup_error for a value out of its range. Threads and lifetime: values.
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

/// How often a request is sent again, and after which pauses.
struct remote_retries {
  int attempts = 10;                                 ///< without progress
  std::chrono::duration<double> limit{180};          ///< without progress, or with refused keys; then the read fails
  std::chrono::duration<double> first_pause{0.2};    ///< the pause before the second attempt is between 0 and this
  std::chrono::duration<double> longest_pause{20};   ///< the bound of later pauses, which doubles each time
};

/// When a request that is late gets a second one beside it, on a new connection; the first answer counts.
struct remote_hedging {
  double share = 0.05;                           ///< at most this share of all requests; 0: none
  std::chrono::duration<double> least_wait{1};   ///< one that waits for its first byte for less is not late
};

/// Options of remote().
struct remote_options {
  std::size_t requests = 64;                              ///< in flight at the same time
  std::size_t part_bytes = std::size_t{8} << 20;          ///< asked for by one request
  std::size_t memory_bytes = std::size_t{256} << 20;      ///< fetched ahead of its readers
  std::vector<std::pair<std::string, std::string>> headers{};   ///< sent with each http:// and https:// request
  /// Returns further headers for http:// and https://, such as a token that expires. Called at the first request, and
  /// again after 401 and 403 as for the keys of stores (s3_options.hpp). One thread at a time calls it.
  std::function<std::vector<std::pair<std::string, std::string>>()> current_headers{};
  /// Receives each notice, such as that keys are refused and looked for again, on any thread. Empty: lines on stderr.
  notice_function notice{};
  std::string ca_file{};                                  ///< certificates of authorities; empty: the system's
  bool http2 = false;   ///< shares connections; slower for large objects, as each connection has one limit of speed
  std::chrono::duration<double> connect_limit{10};        ///< for a connection to stand
  std::chrono::duration<double> stall_limit{20};          ///< an attempt slower than the next for so long is ended
  std::uint64_t stall_bytes_per_second = 1'000;
  std::optional<std::uint64_t> bytes_per_second{}, requests_per_second{};   ///< limits for all together
  remote_retries retry{};
  remote_hedging hedge{};
  s3_options s3{};   ///< of names that begin with s3://
  gs_options gs{};   ///< of names that begin with gs://
  cache_options cache{};   ///< with .folder: keeps what was read on a local disk
};

}}  // namespace millrace
