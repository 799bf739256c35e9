// Defines what remote_figures.hpp declares.
#pragma once

#include <millrace/adapt/remote/transfer/remote_figures.hpp>

#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::string to_text(const remote_figures& f) {
  char text[600];
  std::snprintf(text, sizeof text,
                "remote: %.3f GB by %llu requests over %llu connections, %zu in flight; first byte after %.0f ms, then "
                "%.0f MB/s each; %.0f MB held, at most %.0f\n"
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

}}  // namespace millrace
