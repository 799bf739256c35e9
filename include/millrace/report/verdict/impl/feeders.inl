// Definitions for feeders.hpp.
#pragma once

#include <millrace/report/verdict/feeders.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/base/format.hpp>
#include <millrace/device/slot_memory.hpp>
#include <millrace/report/verdict/limits.hpp>
#include <millrace/simd/stream_copy.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::string feeder_gain::text() const {
  using namespace detail;
  const std::string row = "(a row of " + bytes_text(row_bytes) + " costs " + time_text(prepare_ns) + " here, and " +
                          time_text(receive_ns) + " to receive)";
  if (times < 1.05) return "feeders: no gain " + row;
  return "feeders: " + fixed(times, 1) + " times, needs " + three_digits(gbit_per_s) + " Gb/s and " +
         fixed(std::max(1.0, feeder_cores), 0) + " cores " + row;
}

MILLRACE_INLINE std::optional<feeder_gain> feeder_gain_of(const flow_statistics& f) {
  using namespace detail;
  // The last stage of the workers fills the rows.
  const auto work = std::find_if(f.stages.rbegin(), f.stages.rend(),
                                 [](const stage_statistics& s) { return s.kind == stage_kind::work; });
  if (work == f.stages.rend() || work->busy_ns == 0 || work->samples() <= 0) return std::nullopt;
  if (f.samples == 0 || f.batches < 5 || f.delivered_bytes == 0 || f.receive_ns_per_byte <= 0) return std::nullopt;
  feeder_gain g;
  g.row_bytes = static_cast<double>(f.delivered_bytes) / static_cast<double>(f.samples);
  g.prepare_ns = static_cast<double>(work->busy_ns) / work->samples();
  g.receive_ns = g.row_bytes * f.receive_ns_per_byte;
  // If a quota or other threads limit the cores, receiving waits for a core as preparing does.
  if (const auto cpu_ns = static_cast<double>(work->cpu_ns); cpu_ns > 0)
    g.receive_ns *= f.throttled_ns > 0 ? static_cast<double>(work->busy_ns) / cpu_ns
                                       : 1 + static_cast<double>(work->run_delay_ns) / cpu_ns;
  const auto workers = static_cast<double>(work->concurrency);
  const std::size_t index = f.stages.size() - 1 - static_cast<std::size_t>(work - f.stages.rbegin());
  const flow_limits limits = limits_of(f);
  double rate = 1e9 * workers / std::min(g.receive_ns, g.prepare_ns);
  g.next = "receiving";
  for (const stage_limit& l : limits.all)
    if (l.stage != index && l.samples_per_s < rate) {
      rate = l.samples_per_s;
      g.next = l.name;
    }
  g.times = std::max(1.0, rate / limits.lowest().samples_per_s);
  const double by_feeders = (1e-9 * rate * g.prepare_ns - workers) / (1e-9 * (g.prepare_ns - g.receive_ns));
  if (g.times <= 1 || g.prepare_ns <= g.receive_ns || by_feeders <= 0) return g;
  // Assumes that the run will reach the same share of its lowest limit as now.
  const double sent = by_feeders * std::min(1.0, f.samples_per_s() / limits.lowest().samples_per_s);
  g.gbit_per_s = 8e-9 * sent * g.row_bytes;
  g.feeder_cores = 1e-9 * sent * g.prepare_ns;
  return g;
}

namespace detail {

/// A TCP connection of this process to itself.
class loopback_connection {
 public:
  loopback_connection() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) return;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(listener, address, size) == 0 && ::listen(listener, 1) == 0 &&
        ::getsockname(listener, address, &size) == 0) {
      sender_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (sender_ >= 0 && ::connect(sender_, address, size) == 0) receiver_ = ::accept(listener, nullptr, nullptr);
      const int on = 1;
      ::setsockopt(sender_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const timeval limit{.tv_sec = 1, .tv_usec = 0};
      ::setsockopt(receiver_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    ::close(listener);
  }
  loopback_connection(const loopback_connection&) = delete;
  loopback_connection& operator=(const loopback_connection&) = delete;
  ~loopback_connection() {
    if (sender_ >= 0) ::close(sender_);
    if (receiver_ >= 0) ::close(receiver_);
  }

  explicit operator bool() const noexcept { return receiver_ >= 0; }
  /// Sends without waiting; returns the number of bytes, or -1.
  ssize_t send(const std::byte* data, std::size_t bytes) noexcept {
    return ::send(sender_, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  /// Receives; waits for at most a second. Returns the number of bytes, or -1.
  ssize_t receive(std::byte* to, std::size_t bytes) noexcept { return ::recv(receiver_, to, bytes, 0); }

 private:
  int sender_ = -1, receiver_ = -1;
};

/// Memory of a slot, with resident pages.
struct filled_slot {
  explicit filled_slot(std::size_t bytes) : data(static_cast<std::byte*>(allocate_slot(bytes))) {
    std::memset(data, 0, bytes);
  }
  filled_slot(const filled_slot&) = delete;
  filled_slot& operator=(const filled_slot&) = delete;
  ~filled_slot() { free_slot(data); }

  std::byte* const data;
};

}   // namespace detail

MILLRACE_INLINE double measure_receiving() {
  detail::loopback_connection connection;
  if (!connection) return 0;
  constexpr std::size_t piece_bytes = 64 << 10, row_bytes = 128 << 10, request_bytes = 2 << 20, all_bytes = 16 << 20;
  // The memory is that of a run: slots are larger than the caches of a core, and have huge pages.
  const detail::filled_slot piece(piece_bytes), row(row_bytes), slots(all_bytes);
  std::int64_t spent_ns = 0;
  for (std::size_t received = 0; received < all_bytes;) {
    std::size_t sent = 0;
    const std::size_t most = std::min(request_bytes, all_bytes - received);
    while (sent < most) {
      const ssize_t n = connection.send(piece.data, std::min(piece_bytes, most - sent));
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    if (sent == 0) return 0;
    const std::int64_t start = detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::size_t filled = 0;   // bytes of the row
    for (const std::size_t end = received + sent; received < end;) {
      const ssize_t n = connection.receive(piece.data, std::min({piece_bytes, row_bytes - filled, end - received}));
      if (n <= 0) return 0;
      std::memcpy(row.data + filled, piece.data, static_cast<std::size_t>(n));
      filled += static_cast<std::size_t>(n), received += static_cast<std::size_t>(n);
      if (filled < row_bytes && received < end) continue;
      const std::uint32_t sum = crc32c({row.data, filled});
      detail::stream_copy(slots.data + received - filled, row.data, filled);
      std::memcpy(slots.data, &sum, sizeof sum);   // without a use, the compiler could omit the checksum
      filled = 0;
    }
    spent_ns += detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
  }
  return static_cast<double>(spent_ns) / static_cast<double>(all_bytes);
}

}}   // namespace millrace
