// Statistics of a remote storage: requests, bytes, and reasons for retries.
//
//   auto storage = mr::remote();
//   ...                                                    // a run that reads from the storage
//   std::puts(mr::to_text(storage.statistics()).c_str());
//
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Numbers of requests and bytes, and reasons for retries.
struct remote_statistics {
  std::uint64_t requests = 0, connections = 0, bytes = 0;
  std::uint64_t retries = 0;   ///< sum of the following six members
  std::uint64_t not_connected = 0, broken_off = 0, stalled = 0, busy = 0, wrong_answers = 0, keys_renewed = 0;
  std::uint64_t redirects = 0;
  std::uint64_t hedges = 0, hedges_won = 0;
  std::uint64_t failures = 0;                       ///< reads that failed after all retries
  std::size_t in_flight = 0;                        ///< number of requests in progress
  std::size_t held_bytes = 0, max_held_bytes = 0;   ///< memory for prefetched and requested bytes: current, maximum
  double first_byte_seconds = 0;                    ///< mean time from a request to the first byte of its response
  double bytes_per_second_each = 0;                 ///< mean speed of one request, from its first byte to its end
};

/// Returns the statistics as two lines.
inline std::string to_text(const remote_statistics& f) {
  char text[600];
  std::snprintf(text, sizeof text,
                "remote: %.3f GB by %llu requests over %llu connections, %zu in flight; first byte after %.0f ms, then "
                "%.0f MB/s each; %.0f MB buffered, at most %.0f\n"
                "  sent again: %llu (not connected %llu, broken off %llu, stalled %llu, busy %llu, wrong answers %llu, "
                "keys renewed %llu); redirects %llu; hedged %llu, of which %llu won; given up %llu",
                1e-9 * static_cast<double>(f.bytes), static_cast<unsigned long long>(f.requests),
                static_cast<unsigned long long>(f.connections), f.in_flight, 1e3 * f.first_byte_seconds,
                1e-6 * f.bytes_per_second_each, 1e-6 * static_cast<double>(f.held_bytes),
                1e-6 * static_cast<double>(f.max_held_bytes), static_cast<unsigned long long>(f.retries),
                static_cast<unsigned long long>(f.not_connected), static_cast<unsigned long long>(f.broken_off),
                static_cast<unsigned long long>(f.stalled), static_cast<unsigned long long>(f.busy),
                static_cast<unsigned long long>(f.wrong_answers), static_cast<unsigned long long>(f.keys_renewed),
                static_cast<unsigned long long>(f.redirects), static_cast<unsigned long long>(f.hedges),
                static_cast<unsigned long long>(f.hedges_won), static_cast<unsigned long long>(f.failures));
  return text;
}

}}   // namespace millrace
