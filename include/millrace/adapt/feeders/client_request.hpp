// A request to a feeder, and the connection of its client.
//
//   mr::detail::client_connection from{.socket = fd};
//   mr::detail::client_request r{from, mr::detail::decide(request, rules)};
//   from.set_limit(patience_ns);                         // the client must receive the rows within this time
//
// Errors: none. Threads: the mutex of the feeder_server guards both, except `socket`, which is constant.
#pragma once

#include <millrace/adapt/feeders/row_protocol.hpp>
#include <millrace/base/clock.hpp>
#include <millrace/order/exact_order.hpp>

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The connection of a client.
struct client_connection {
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};

  int socket;
  std::uint64_t end_ns = no_limit;   ///< the client must have sent a request, or received the rows, before this time

  void set_limit(std::uint64_t ns) noexcept { end_ns = steady_now_ns() + ns; }
  /// Returns whether the client has closed the connection.
  bool is_closed() const noexcept {
    pollfd events{socket, POLLRDHUP, 0};
    return ::poll(&events, 1, 0) > 0;
  }
};

/// A request, from its headers to the end of its answer.
struct client_request {
  client_connection& from;
  feeder_decision decision;
  std::vector<ordered_sample> samples{};
  std::size_t part_rows = 1, next = 0, missing = 0;   ///< rows of a part; the next part; missing parts
  std::vector<std::vector<std::byte>> parts{};        ///< the rows
  unsigned status = 200;

  std::uint64_t rank() const noexcept { return decision.range.first % decision.range.step; }
};

}}}   // namespace millrace::detail
