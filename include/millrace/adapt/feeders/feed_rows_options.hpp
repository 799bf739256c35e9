// The options of feed_rows() (adapt/feed_rows.hpp).
//
//   mr::feed_rows(std::move(flow), {.listen = "0.0.0.0:8717", .token = secret, .session = options_of_the_trainer});
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/run/session_options.hpp>

#include <cstddef>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// How a feeder listens, and the run whose rows it computes.
struct feed_rows_options {
  /// Address and port, such as 0.0.0.0:8717 or [::]:8717. The port 0 is any free port; a notice reports it.
  std::string listen = "127.0.0.1:8717";
  /// A secret that trainers send with each request. Required unless the address is a loopback address.
  std::string token{};
  /// Files in the PEM format with the certificate chain and the private key. Empty: no TLS.
  std::string certificate{}, key{};
  /// The options of the trainer's session. The feeder uses those that influence rows: the number of ranks in `world`,
  /// `epoch_batches`, `lanes`, `grown` and `on_damage`. It also uses `threads` (empty: all usable cores) and `notice`.
  session_options session{};
  /// Maximum number of requests whose rows are computed or sent. The feeder refuses others with the status 429, unless
  /// their rank has less than its share. 0: 16, and 4 for each worker.
  std::size_t max_requests = 0;
  /// Maximum time in which a client receives an answer, and maximum duration of the requests in work after SIGTERM.
  /// At most one day.
  std::chrono::seconds patience{20};
};

}}  // namespace millrace
