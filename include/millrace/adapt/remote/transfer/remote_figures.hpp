// Counts of a remote storage: requests, bytes, and why requests were sent again.
//
//   auto place = mr::remote();
//   ...                                                    // a run that reads from it
//   std::puts(mr::to_text(place.figures()).c_str());
//
// Errors: none. Threads and lifetime: values.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Counts of requests and bytes, and why requests were sent again.
struct remote_figures {
  std::uint64_t requests = 0, connections = 0, bytes = 0;
  std::uint64_t retries = 0;   ///< all of the following six together
  std::uint64_t not_connected = 0, broken_off = 0, stalled = 0, busy = 0, wrong_answers = 0, keys_renewed = 0;
  std::uint64_t redirects = 0;
  std::uint64_t hedges = 0, hedges_won = 0;
  std::uint64_t failures = 0;            ///< reads that were given up
  std::size_t in_flight = 0;             ///< requests now
  std::size_t held_bytes = 0, max_held_bytes = 0;   ///< fetched or asked for ahead of readers
  double first_byte_seconds = 0;         ///< mean of the time to the first byte
  double bytes_per_second_each = 0;      ///< mean speed of a request behind its first byte
};

/// Returns two lines that say it.
std::string to_text(const remote_figures& f);

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/remote_figures.inl>
#endif
