// The options of feed_rows() (adapt/feed_rows.hpp). A program that calls feed_rows() is a feeder: it computes rows of
// batches for trainers on other machines.
//
//   mr::feed_rows(std::move(flow), {.listen = "0.0.0.0:8717", .token = secret, .session = options_of_the_trainer});
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/run/session_options.hpp>

#include <cstddef>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// The address at which a feeder listens, and the run whose rows it computes.
struct feed_rows_options {
  /// Address and port, such as 0.0.0.0:8717 or [::]:8717. For port 0, the system selects a free port, and a notice
  /// reports its number.
  std::string listen = "127.0.0.1:8717";
  /// A secret that trainers send with each request. Required unless the address is a loopback address.
  std::string token{};
  /// Paths of two files in the PEM format: the certificate chain, and the private key. If both paths are empty,
  /// connections are not encrypted.
  std::string certificate{}, key{};
  /// The options of the trainer's session. The feeder uses those that influence rows: the number of ranks in `world`,
  /// `epoch_batches`, `lanes`, `grown` and `on_damage`. It also uses `threads` (empty: all usable cores) and `notice`.
  session_options session{};
  /// Maximum number of requests in progress. At this maximum, the feeder refuses new requests with status 429.
  /// Exception: if a rank has fewer requests in progress than its equal share of max_requests, its request is accepted,
  /// up to a total of twice max_requests. For example, with 16 requests and 4 ranks, the share of each rank is 4
  /// requests. The value 0 means 16 requests, plus 4 for each worker.
  std::size_t max_requests = 0;
  /// A time limit from 1 s to one day. After the rows of a request are computed, the client must receive them within
  /// this time. After a connection opens, and after each answer, the client must send a request within twice this time.
  /// Otherwise, the feeder closes the connection. It also closes a connection on which no byte arrives or leaves for
  /// this time. After SIGTERM, the feeder waits at most this time for the requests in progress.
  std::chrono::seconds patience{20};
};

}}   // namespace millrace
