// Definitions for feeder_attempt.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_attempt.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/text.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void feeder_state::record_hello() noexcept {
  statistics.is_ready = true;
  all_rows = std::max(all_rows, least_window * statistics.workers);
  statistics.window = in_share(all_rows);
  due_ns = 0;
  least_seconds = 0;   // the network may have changed
}

MILLRACE_INLINE void feeder_state::record_answer(double seconds, std::size_t requested_rows,
                                                 std::int64_t now_ns) noexcept {
  seconds = std::max(seconds, 1e-6);
  feeder_statistics& s = statistics;
  const double now_rate = static_cast<double>(requested_rows) / seconds;   // by Little's law
  rate += answers == 0 ? now_rate : (now_rate - rate) / 8;
  least_seconds = least_seconds == 0 ? seconds : std::min(seconds, least_seconds);
  slowest_seconds = std::max(seconds, slowest_seconds - slowest_seconds / 16);
  total_seconds += seconds;
  s.wait_seconds = total_seconds / static_cast<double>(++answers);
  s.rows_per_second = static_cast<double>(s.rows) / std::max(1e-9 * static_cast<double>(now_ns - first_ns), 1e-6);
  const auto fit = static_cast<std::size_t>(rate * (0.05 + 2 * least_seconds));
  share = std::min(share + 1.0 / (16.0 * static_cast<double>(requests_to_fill())), 1.0);
  all_rows = std::clamp(fit, least_window * s.workers, max_window * s.workers);
  s.window = in_share(all_rows);
  retry = retry_state(0);
}

MILLRACE_INLINE void feeder_state::record_busy(std::int64_t sent_ns, std::int64_t now_ns,
                                               std::int64_t pause_ns) noexcept {
  ++statistics.busy;
  if (sent_ns >= reduced_ns) {
    reduced_ns = now_ns;
    share = std::max(share / 2, 1.0 / 64);
    statistics.window = std::max<std::size_t>(statistics.window / 2, 1);
  }
  if (running == 0) due_ns = now_ns + pause_ns;
}

MILLRACE_INLINE void feeder_state::record_failure(const std::string& problem, double uniform,
                                                  std::int64_t least_pause_ns) {
  const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  ++statistics.failures;
  statistics.problem = printable(problem, 300);
  if (!std::exchange(statistics.is_ready, false) && due_ns > now_ns) return;   // the request was sent before the pause
  const remote_retries rule{.attempts = 8,
                            .limit = std::chrono::hours(24),
                            .first_pause = std::chrono::milliseconds(20),
                            .longest_pause = std::chrono::seconds(2)};
  if (retry.attempts() == 0) retry = retry_state(now_ns);
  const auto pause_ns = retry.next_pause_ns(rule, now_ns, uniform, least_pause_ns);
  due_ns = now_ns + pause_ns.value_or(std::max<std::int64_t>(least_pause_ns, 2'000'000'000));
}

MILLRACE_INLINE feeder_attempt::feeder_attempt(feeder_state& f, std::shared_ptr<feeder_part> of, const settings& s)
    : to(f), part(std::move(of)) {
  const feeder_options& o = *s.options;
  const feeder_host& host = to.at.of;
  const std::string url = host.scheme + "://" + host.name() +
                          (part ? rows_path(s.run, part->range) : hello_path(s.run));
  if (part)
    rows_.emplace(
        feeder_row_decoder::options{.rows = part->range.count, .max_row_bytes = s.max_row_bytes, .buffers = s.buffers});
  if (!o.token.empty()) headers_.add("Authorization: Bearer " + o.token);
  headers_.add("Accept:");
  route_.add("::" + bracketed(to.at.numeric) + ":" + host.port);
  handle.set(CURLOPT_ERRORBUFFER, message_);
  handle.set(CURLOPT_URL, url.c_str());
  handle.set(CURLOPT_CONNECT_TO, route_.get());   // the URL keeps the name, which is in the certificate
  handle.set(CURLOPT_PROXY, "");
  handle.set(CURLOPT_PROTOCOLS_STR, "http,https");
  handle.set(CURLOPT_HTTPHEADER, headers_.get());
  handle.set(CURLOPT_NOSIGNAL, 1L);
  handle.set(CURLOPT_CONNECTTIMEOUT_MS,   // 0 is libcurl's default, 300 s
             static_cast<long>(std::clamp(1'000 * o.connect_limit.count(), 1.0, 86'400'000.0)));
  handle.set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  handle.set(CURLOPT_BUFFERSIZE, static_cast<long>(buffer_bytes(s.max_row_bytes)));
  handle.set(CURLOPT_TCP_KEEPALIVE, 1L);
  handle.set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
  handle.set(CURLOPT_USERAGENT, "millrace");
  handle.set(CURLOPT_WRITEFUNCTION, &feeder_attempt::take_body);
  handle.set(CURLOPT_WRITEDATA, this);
  if (!o.ca_file.empty()) handle.set(CURLOPT_CAINFO, o.ca_file.c_str());
}

MILLRACE_INLINE void feeder_attempt::count_start() noexcept {
  if (to.running++ == 0) to.progress_ns = sent_ns;
  if (!part) {
    to.is_greeting = true;
    return;
  }
  if (to.statistics.requests++ == 0) to.first_ns = sent_ns;
  requested_rows = to.statistics.in_flight += part->range.count;
  ++part->running;
  part->last = &to;
}

MILLRACE_INLINE void feeder_attempt::count_end() noexcept {
  --to.running;
  if (!part) {
    to.is_greeting = false;
    return;
  }
  --part->running;
  to.statistics.in_flight -= part->range.count;
}

MILLRACE_INLINE std::string feeder_attempt::problem_of(CURLcode code) const {
  if (!problem_.empty()) return problem_;
  if (code != CURLE_OK) return message_[0] != '\0' ? message_ : curl_easy_strerror(code);
  if (rows_ && status() == 200) try {
      rows_->finish();
    } catch (const data_error& e) {
      return e.message();
    }
  return {};
}

MILLRACE_INLINE std::int64_t feeder_attempt::pause_ns() const noexcept {
  return 1'000'000'000 * std::clamp<std::int64_t>(number<curl_off_t>(CURLINFO_RETRY_AFTER), 0, 60);
}

MILLRACE_INLINE void feeder_attempt::read_workers() noexcept {
  curl_header* header = nullptr;
  if (curl_easy_header(handle.get(), workers_header, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return;
  if (const auto workers = decimal_number(header->value))
    to.statistics.workers = std::clamp<std::uint64_t>(*workers, 1, 4'096);
}

MILLRACE_INLINE std::size_t feeder_attempt::take_body(char* data, std::size_t, std::size_t count, void* self) noexcept {
  auto& a = *static_cast<feeder_attempt*>(self);
  a.to.progress_ns = read_clock_ns(CLOCK_MONOTONIC);
  try {
    if (a.part && a.status() == 200) return a.take_rows({reinterpret_cast<const std::byte*>(data), count}) ? count : 0;
    if (a.body.size() + count <= max_body_bytes) {
      a.body.append(data, count);
      return count;
    }
    a.problem_ = "the answer is longer than 64 KiB";
  } catch (const error& e) {
    a.problem_ = e.message();
  } catch (...) {   // exceptions cannot pass libcurl's frames
  }
  return 0;
}

MILLRACE_INLINE bool feeder_attempt::take_rows(std::span<const std::byte> bytes) {
  rows_->add(bytes, [this](const row_answer& row) {
    if (row.row + 1 == part->range.count) part->subtract();   // first: the session then requests other rows
    if (part->slots->put(part->first + row.row, row.bytes, row.crc)) ++to.statistics.rows;
    else if (crc32c(row.bytes) != row.crc) problem_ = "a row has a wrong checksum";
  });
  return problem_.empty();
}

}}}   // namespace millrace::detail
