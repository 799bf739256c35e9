// Definitions for limits.hpp.
#pragma once

#include <millrace/report/verdict/limits.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/base/format.hpp>
#include <millrace/device/slot_memory.hpp>
#include <millrace/io/file/unique_fd.hpp>
#include <millrace/simd/stream_copy.hpp>

#include <netinet/in.h>

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE double flow_limits::margin() const noexcept {
  return all.size() > 1 ? all[1].samples_per_s / all[0].samples_per_s : std::numeric_limits<double>::infinity();
}

MILLRACE_INLINE const stage_limit* flow_limits::find(stage_kind kind) const noexcept {
  for (const auto& l : all)
    if (l.kind == kind) return &l;
  return nullptr;
}

MILLRACE_INLINE bool flow_limits::reads_in_turn() const noexcept {
  return std::any_of(all.begin(), all.end(), [](const auto& l) { return l.in_turn; });
}

namespace detail {

MILLRACE_INLINE double predicted_flow_change::work_time_of(std::size_t index) const noexcept {
  return stage == index || stage == ~std::size_t{0} ? work_time : 1;
}

MILLRACE_INLINE stage_limit reading_limit(const flow_statistics& f, std::size_t index, const predicted_flow_change& c) {
  const stage_statistics& read = f.stages[index];
  const double samples = read.samples(), threads = static_cast<double>(read.concurrency) * c.io_threads;
  const double reading_s = 1e-9 * static_cast<double>(read.busy_ns) / c.storage_speed;
  double all_ns = static_cast<double>(read.busy_ns);   // without the change
  stage_limit out{index, read.name, stage_kind::read, 0, false};
  double unpacking_s = 0;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    if (f.stages[i].kind != stage_kind::unpack) continue;
    unpacking_s += 1e-9 * static_cast<double>(f.stages[i].busy_ns) * c.work_time_of(i);
    all_ns += static_cast<double>(f.stages[i].busy_ns);
    if (unpacking_s > reading_s) out = {i, f.stages[i].name, stage_kind::unpack, 0, false};
  }
  if (reading_s + unpacking_s <= 0) return out;
  out.samples_per_s = samples * threads / (reading_s + unpacking_s);
  stage_limit in_turn = out;
  in_turn.in_turn = true;

  const double storage_busy_s = 1e-9 * static_cast<double>(f.reads_at_once.busy_ns()) / c.storage_speed;
  if (storage_busy_s > 0) {
    // If the contention is unknown, all reads ran at one number of threads. More threads raise the speed at most in
    // proportion.
    const std::optional<double> contention = f.reads_at_once.contention();
    double faster = contention ? read_levels::speed(threads, *contention) / f.reads_at_once.mean_speed(*contention)
                               : std::max(1.0, c.io_threads);
    if (f.storage_ceiling_bytes_per_s > 0 && read.bytes > 0) {
      const double speed = static_cast<double>(read.bytes) / storage_busy_s;
      faster = std::min(faster, std::max(1.0, f.storage_ceiling_bytes_per_s * c.storage_speed / speed));
    }
    const double storage = samples / storage_busy_s * faster;
    if (storage < out.samples_per_s) out = {index, read.name, stage_kind::read, storage, false};
  }

  const std::optional<double> useful = f.useful_share_of_other_readers();
  if (!useful) return out;
  const double in_turn_s = static_cast<double>(f.in_turn_ns) * (reading_s + unpacking_s) / all_ns;
  const double one = static_cast<double>(f.in_turn_samples) / read.items_per_sample / in_turn_s;
  in_turn.samples_per_s = one * (1 + *useful * (threads - 1));
  // Prefers `in_turn` if both limits are about equal, because this limit states the reason.
  if (in_turn.samples_per_s >= 1.1 * out.samples_per_s) return out;
  in_turn.samples_per_s = std::min(in_turn.samples_per_s, out.samples_per_s);
  return in_turn;
}

MILLRACE_INLINE flow_limits limits_of(const flow_statistics& f, const predicted_flow_change& c) {
  flow_limits limits;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    const stage_statistics& s = f.stages[i];
    stage_limit l{i, s.name, s.kind, 0, false};
    double busy_s = 1e-9 * static_cast<double>(s.busy_ns);
    auto concurrency = static_cast<double>(s.concurrency);
    switch (s.kind) {
      case stage_kind::read: l = reading_limit(f, i, c); break;
      case stage_kind::unpack: continue;   // part of the limit of read
      case stage_kind::work:
        if (s.concurrency > 1 || f.find(stage_kind::work) == &s) concurrency *= c.workers;
        busy_s *= c.work_time_of(i);
        break;
      case stage_kind::copy: busy_s *= c.copy_time; break;
      case stage_kind::step:
        if (f.device_gap_ns) busy_s = f.wall_s() - 1e-9 * static_cast<double>(*f.device_gap_ns);
        busy_s *= c.step_time;
        break;
    }
    if (s.kind != stage_kind::read && busy_s > 0) l.samples_per_s = s.samples() * concurrency / busy_s;
    if (l.samples_per_s > 0) limits.all.push_back(l);
  }
  std::stable_sort(limits.all.begin(), limits.all.end(),
                   [](const auto& a, const auto& b) { return a.samples_per_s < b.samples_per_s; });
  return limits;
}

}
}}   // namespace millrace::detail

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
