// Options and statistics of feeders, which are other machines that compute rows for a session (adapt/feeders.hpp).
//
//   mr::feeder_options{.hosts = {"node[01-04]:8717", "https://feeders.svc:443"}, .token = token};
//   for (const mr::feeder_statistics& s : storage->statistics()) log(s.address, s.rows_per_second);
//
// Errors: mr::feeders() throws setup_error for invalid options. Threads: not synchronized.
#pragma once

#include <millrace/adapt/feeders/row_storage.hpp>
#include <millrace/adapt/remote/transfer/remote_options.hpp>
#include <millrace/base/format.hpp>

#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of feeders().
struct feeder_options {
  /// HOST:PORT or https://HOST:PORT. HOST may be a list, with Slurm's syntax (node[01-04,7]:8717) or with braces
  /// (node{01..04}:8717).
  std::vector<std::string> hosts{};
  std::string token{};     ///< sent as the header Authorization: Bearer; if empty, no header is sent
  std::string ca_file{};   ///< certificates of authorities for https://; if empty, the system's certificates
  std::size_t memory_bytes = std::size_t{64} << 20;   ///< maximum memory of answers that arrive at the same time
  std::chrono::duration<double> connect_limit{5};     ///< timeout for establishing a connection
  std::chrono::duration<double> answer_limit{20};     ///< maximum time from a request to the end of its answer
  /// Rules for a second request to another feeder if an answer is late.
  remote_hedging hedge{.least_wait = std::chrono::milliseconds(50)};
  notice_function notice{};   ///< receives notices, on another thread; if empty, they are written to stderr
};

/// Statistics of one feeder.
struct feeder_statistics {
  std::string address{};   ///< host and port, and the address to which the name was resolved
  bool is_ready = false;
  std::size_t workers = 1;     ///< number of rows that the feeder computes for this rank at the same time
  std::size_t window = 0;      ///< current maximum of in_flight
  std::size_t in_flight = 0;   ///< number of rows in requests that are not answered yet
  std::uint64_t rows = 0;      ///< rows that reached a batch
  std::uint64_t requests = 0, failures = 0, busy = 0, hedges_won = 0;   ///< busy: answers with status 429
  double rows_per_second = 0;                                           ///< mean rate since its first request
  double wait_seconds = 0;                                              ///< mean duration of its requests
  std::string problem{};                                                ///< description of its last failure
};
/// Returns one line for each feeder.
inline std::string to_text(const std::vector<feeder_statistics>& all) {
  using detail::fixed, std::to_string;
  std::string text;
  for (const feeder_statistics& s : all)
    text += (text.empty() ? "feeder " : "\nfeeder ") + s.address + ": " + to_string(s.rows) + " rows, " +
            fixed(s.rows_per_second, 0) + " a second; " + to_string(s.requests) + " requests of " +
            fixed(1e3 * s.wait_seconds, 1) + " ms; " + to_string(s.in_flight) + " of " + to_string(s.window) +
            " rows in flight; " + to_string(s.failures) + " failures, " + to_string(s.busy) + " busy, " +
            to_string(s.hedges_won) + " hedges won" + (s.is_ready ? "" : "; not ready: " + s.problem);
  return text;
}

/// A row storage that receives its rows from feeders.
class feeder_storage : public row_storage {
 public:
  /// Returns the statistics of all feeders, at most 0.1 s old.
  virtual std::vector<feeder_statistics> statistics() const = 0;
  std::string describe() const final {
    std::string text = to_text(statistics());
    for (std::size_t end; (end = text.find('\n')) != std::string::npos;) text.replace(end, 1, "; ");
    return text;
  }
};

/// Returns a storage for session_options::rows. Connections to the feeders are opened only when a session opens the
/// storage.
std::shared_ptr<feeder_storage> feeders(feeder_options options);

}}   // namespace millrace
