// Definitions for feeders.hpp.
#pragma once

#include <millrace/report/verdict/feeders.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/base/format.hpp>
#include <millrace/device/slot_memory.hpp>
#include <millrace/io/file/unique_fd.hpp>
#include <millrace/report/verdict/limits.hpp>
#include <millrace/simd/stream_copy.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

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

/// Returns both ends of a TCP connection over the loopback interface, or two empty descriptors.
MILLRACE_INLINE std::pair<unique_fd, unique_fd> loopback_connection() {
  unique_fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  unique_fd sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listener.get(), address, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), address, &size) != 0 || ::connect(sender.get(), address, size) != 0)
    return {};
  unique_fd receiver(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(receiver.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return {std::move(sender), std::move(receiver)};
}

}   // namespace detail

MILLRACE_INLINE double measure_receiving() {
  const auto [sender, receiver] = detail::loopback_connection();
  if (!receiver) return 0;
  constexpr std::size_t piece_bytes = 64 << 10, row_bytes = 128 << 10, request_bytes = 2 << 20, all_bytes = 16 << 20;
  // The memory is that of a run: slots are larger than the caches of a core, and have huge pages.
  const auto memory = [](std::size_t bytes) {
    std::unique_ptr<std::byte, void (*)(void*)> slot(static_cast<std::byte*>(detail::allocate_slot(bytes)),
                                                     [](void* of) { detail::free_slot(of); });
    std::memset(slot.get(), 0, bytes);
    return slot;
  };
  const auto piece = memory(piece_bytes), row = memory(row_bytes), slots = memory(all_bytes);
  std::int64_t spent_ns = 0;
  for (std::size_t received = 0; received < all_bytes;) {
    std::size_t sent = 0;
    for (ssize_t n = 1; n > 0 && sent < request_bytes; sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
      n = ::send(sender.get(), piece.get(), piece_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    sent = std::min(sent, all_bytes - received);   // the last bytes are not received
    if (sent == 0) return 0;
    const std::int64_t start = detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::size_t filled = 0;   // bytes of the row
    for (const std::size_t end = received + sent; received < end;) {
      const ssize_t n = ::recv(receiver.get(), piece.get(), std::min({piece_bytes, row_bytes - filled, end - received}),
                               0);
      if (n <= 0) return 0;
      std::memcpy(row.get() + filled, piece.get(), static_cast<std::size_t>(n));
      filled += static_cast<std::size_t>(n), received += static_cast<std::size_t>(n);
      if (filled < row_bytes && received < end) continue;
      const std::uint32_t sum = crc32c({row.get(), filled});
      detail::stream_copy(slots.get() + received - filled, row.get(), filled);
      std::memcpy(slots.get(), &sum, sizeof sum);   // without a use, the compiler could omit the checksum
      filled = 0;
    }
    spent_ns += detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
  }
  return static_cast<double>(spent_ns) / static_cast<double>(all_bytes);
}

}}   // namespace millrace
