// Definitions for fetch_attempt.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_attempt.hpp>

#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/adapt/remote/transfer/request_addresses.hpp>

#include <algorithm>
#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::optional<content_range> parse_content_range(std::string_view text) {
  if (text.size() < 6 || http_lower(text.substr(0, 6)) != "bytes ") return std::nullopt;
  text = trimmed_http(text.substr(6));
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  content_range result;
  const std::string_view range = text.substr(0, slash), total = text.substr(slash + 1);
  if (total != "*" && !(result.total_bytes = decimal_number(total))) return std::nullopt;
  if (range == "*") return result.total_bytes ? std::optional(result) : std::nullopt;
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = decimal_number(range.substr(0, dash)), last = decimal_number(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last == ~std::uint64_t{0}) return std::nullopt;
  if (result.total_bytes && *last >= *result.total_bytes) return std::nullopt;
  result.range = byte_interval{*first, *last + 1};
  return result;
}

MILLRACE_INLINE std::string range_head::version() const {
  if (!etag.empty()) return std::string(etag);
  return last_modified.empty() ? std::string() : "changed " + std::string(last_modified);
}

MILLRACE_INLINE bool range_head::is_of(std::string_view version) const noexcept {
  constexpr std::string_view by_time = "changed ";
  if (version.empty()) return true;
  if (version.starts_with(by_time)) return last_modified.empty() || last_modified == version.substr(by_time.size());
  return etag.empty() || strong(etag) == strong(version);
}

MILLRACE_INLINE judged_answer wrong_answer(std::string problem) {
  return {.what = http_answer_kind::wrong, .problem = std::move(problem)};
}

MILLRACE_INLINE judged_answer replaced_answer(std::string problem) {
  return {.what = http_answer_kind::replaced, .problem = std::move(problem)};
}

MILLRACE_INLINE judged_answer resized_answer(std::uint64_t known_bytes, std::uint64_t bytes) {
  return replaced_answer("it had " + std::to_string(known_bytes) + " bytes and has " + std::to_string(bytes) +
                         " bytes");
}

/// Classifies status 416, which means that the server does not have these bytes.
MILLRACE_INLINE judged_answer judge_missing_bytes(const byte_interval& requested, const file_identity* expected,
                                                  const range_head& head) {
  const auto range = parse_content_range(head.content_range);
  // S3 does not return the size of an empty object. Every other object has a first byte.
  if (!expected && requested.first_byte == 0 && !range)
    return {.what = http_answer_kind::nothing, .identity = file_identity()};
  if (!range || !range->total_bytes) return wrong_answer("the server does not have the requested range");
  if (expected && *range->total_bytes != expected->size_bytes)
    return resized_answer(expected->size_bytes, *range->total_bytes);
  if (expected || *range->total_bytes > 0) return wrong_answer("the server reports that the range does not exist");
  return {.what = http_answer_kind::nothing, .identity = file_identity{0, head.version()}};
}

/// Checks the range in a response.
MILLRACE_INLINE judged_answer judge_fetched_range(const byte_interval& requested, const byte_interval& sent,
                                                  const range_head& head) {
  if (sent.first_byte != requested.first_byte || sent.end_byte > requested.end_byte)
    return wrong_answer("the server sent another range: " + std::string(head.content_range.substr(0, 80)));
  return {.what = http_answer_kind::bytes, .first_byte = sent.first_byte, .end_byte = sent.end_byte};
}

/// Classifies the statuses 200 and 206, after which bytes follow.
MILLRACE_INLINE judged_answer judge_fetched_bytes(const byte_interval& requested, const file_identity* expected,
                                                  const range_head& head) {
  if (!head.content_encoding.empty() && http_lower(head.content_encoding) != "identity")
    return wrong_answer("the server compressed the bytes (" + std::string(head.content_encoding.substr(0, 40)) + ")");
  if (expected && !head.is_of(expected->version))
    return replaced_answer("its version was " + expected->version + " and is " + head.version());
  const auto range = parse_content_range(head.content_range);
  const bool has_range = range && range->range;
  if (!has_range && (head.status == 206 || !head.content_range.empty()))
    return wrong_answer("the server does not report which range it sent");
  const auto total = has_range ? range->total_bytes : decimal_number(head.content_length);
  judged_answer result{.what = http_answer_kind::bytes,
                       .end_byte = total.value_or(expected ? expected->size_bytes : 0)};
  if (has_range) result = judge_fetched_range(requested, *range->range, head);
  if (result.what == http_answer_kind::wrong) return result;
  if (expected) return total && *total != expected->size_bytes ? resized_answer(expected->size_bytes, *total) : result;
  if (!total) return wrong_answer("the server does not report the size of the object");
  result.identity = file_identity{*total, head.version()};
  if (*total == 0) result.what = http_answer_kind::nothing;
  return result;
}

MILLRACE_INLINE judged_answer judge_answer(const byte_interval& requested, const file_identity* expected,
                                           const range_head& head) {
  switch (head.status) {
    case 200:
    case 206: return judge_fetched_bytes(requested, expected, head);
    case 404:
    case 410: return expected ? replaced_answer("the server no longer has it") : judged_answer{};
    case 412: return replaced_answer("the server reports that it has another version now");
    case 416: return judge_missing_bytes(requested, expected, head);
    default: return {};
  }
}

MILLRACE_INLINE fetch_problem stalled_problem(const remote_options& o) {
  char text[120];
  std::snprintf(text, sizeof text, "the server sent less than %llu bytes a second for %.3g s",
                static_cast<unsigned long long>(o.stall_bytes_per_second), o.stall_limit.count());
  return {failure_kind::stalled, text};
}

/// Returns an error with the name of the object, and the offset of the first missing byte.
MILLRACE_INLINE std::exception_ptr fetch_error(const fetch_job& job, const std::string& text, const std::string& hint) {
  return exception_of(io_error(text, hint,
                               {.stage = "remote",
                                .shard = without_secrets(job.fetch->object()->name),
                                .offset_bytes = job.missing().first_byte}));
}

MILLRACE_INLINE std::exception_ptr given_up(const fetch_job& job) {
  char tries[80];
  const int attempts = job.retry.attempts();
  std::snprintf(tries, sizeof tries, " (%d %s in %.3g s)", attempts, attempts == 1 ? "attempt" : "attempts",
                job.retry.seconds(steady_ns()));
  const std::string hint = job.problem.kind == failure_kind::not_connected
                               ? "Check the name, the network and the certificates"
                           : job.problem.kind == failure_kind::wrong
                               ? "Check for a server or a proxy that does not support range requests"
                               : "Check the server and the network. remote_options::retry sets the time for retries";
  return fetch_error(job, "cannot read the object: " + job.problem.text + tries, hint);
}

MILLRACE_INLINE std::exception_ptr replaced_object_error(const fetch_job& job, const std::string& what) {
  if (job.fetch->object()->is_assumed)
    return fetch_error(job, "the object differs from the one in the set index: " + printable(what, 300),
                       "Write the set index again with inspect --set-index");
  return fetch_error(job, "the object was replaced while it was being read: " + printable(what, 300),
                     "Write new data under a new name, and start again");
}

MILLRACE_INLINE std::exception_ptr redirect_error(const fetch_job& job, const std::string& target, bool is_safe) {
  const std::string what = is_safe ? "more than " + std::to_string(max_redirects) + " times"
                                   : "to " + (target.empty() ? "nowhere" : printable(without_secrets(target), 200));
  return fetch_error(job, "the server redirects " + what + ": expected http or https, and never from https to http",
                     "Use the object's final address");
}

MILLRACE_INLINE std::int64_t requested_pause_ns(const small_answer& answer) {
  const std::string_view text = header_value(answer.headers, "retry-after");
  std::int64_t seconds = 0;
  if (const auto number = decimal_number(text)) {
    seconds = static_cast<std::int64_t>(std::min<std::uint64_t>(*number, 1'000'000));
  } else if (const auto then = http_date_seconds(text)) {
    seconds = *then - read_clock_ns(CLOCK_REALTIME) / 1'000'000'000;
  }
  return std::max<std::int64_t>(seconds, 0) * 1'000'000'000;
}

MILLRACE_INLINE fetch_attempt::fetch_attempt(std::shared_ptr<fetch_job> of, const remote_options& o, kind k,
                                             curl_easy handle)
    : job_(std::move(of)),
      handle_(std::move(handle)),
      kind_(k),
      range_(job_->missing()),
      sent_(*job_->sent),
      begun_ns_(steady_ns()),
      mark_ns_(begun_ns_) {
  set_up(o);
}

MILLRACE_INLINE bool fetch_attempt::is_stalled(const remote_options& o, std::int64_t now_ns) noexcept {
  const double seconds = 1e-9 * static_cast<double>(now_ns - mark_ns_);
  if (seconds < o.stall_limit.count()) return false;
  const auto bytes = static_cast<double>(received_bytes_ - marked_bytes_);
  mark_ns_ = now_ns;
  marked_bytes_ = received_bytes_;
  return bytes < seconds * static_cast<double>(o.stall_bytes_per_second);
}

MILLRACE_INLINE fetch_problem fetch_attempt::problem(CURLcode code, const remote_options& o) const {
  using enum failure_kind;
  if (judged_.what == http_answer_kind::wrong) return {wrong, judged_.problem};
  const std::string words = message_[0] != '\0' ? printable(message_, 200) : curl_easy_strerror(code);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_SSL_CIPHER: return {not_connected, words, true};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PROXY: return {not_connected, words};
    case CURLE_OPERATION_TIMEDOUT:
      return {not_connected,
              "no connection within " + std::to_string(static_cast<long>(o.connect_limit.count())) + " s"};
    default: break;
  }
  return {broken_off, "the connection broke off after " + std::to_string(received_bytes_) + " bytes" +
                          (code == CURLE_OK ? "" : " (" + words + ")")};
}

MILLRACE_INLINE void fetch_attempt::set_up(const remote_options& o) {
  const std::string& url = sent_.url;
  for (const auto& [name, value] : sent_.headers) headers_.add(value.empty() ? name + ";" : name + ": " + value);
  headers_.add("Range: bytes=" + std::to_string(range_.first_byte) + "-" + std::to_string(range_.end_byte - 1));
  if (const auto& expected = job_->fetch->object()->identity) {
    constexpr std::string_view by_time = "changed ";
    if (expected->version.starts_with('"')) headers_.add("If-Match: " + expected->version);
    else if (expected->version.starts_with(by_time))
      headers_.add("If-Unmodified-Since: " + expected->version.substr(by_time.size()));
  }
  handle_.set(CURLOPT_ERRORBUFFER, message_);
  handle_.set(CURLOPT_URL, url.c_str());
  handle_.set(CURLOPT_PATH_AS_IS, 1L);   // keys may contain "." and ".." between slashes
  handle_.set(CURLOPT_PROTOCOLS_STR, "http,https");
  handle_.set(CURLOPT_HTTPHEADER, headers_.get());
  handle_.set(CURLOPT_NOSIGNAL, 1L);
  handle_.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(1'000 * o.connect_limit.count()));
  handle_.set(CURLOPT_HTTP_VERSION, static_cast<long>(o.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  // libcurl allocates a buffer for each request. Small requests get small buffers, which fit into the CPU's cache.
  handle_.set(CURLOPT_BUFFERSIZE, requested_bytes() < (4U << 20) ? 64L << 10 : 192L << 10);
  handle_.set(CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
  handle_.set(CURLOPT_TCP_KEEPALIVE, 1L);
  handle_.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  handle_.set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
  handle_.set(CURLOPT_USERAGENT, "millrace");
  handle_.set(CURLOPT_WRITEFUNCTION, &fetch_attempt::take_body);
  handle_.set(CURLOPT_WRITEDATA, this);
  handle_.set(CURLOPT_HEADERFUNCTION, &fetch_attempt::take_header);
  handle_.set(CURLOPT_HEADERDATA, this);
  handle_.set(CURLOPT_PRIVATE, this);
  if (!o.ca_file.empty()) handle_.set(CURLOPT_CAINFO, o.ca_file.c_str());
  if (is_hedge() || job_->on_new_connection) handle_.set(CURLOPT_FRESH_CONNECT, 1L);
}

MILLRACE_INLINE std::size_t fetch_attempt::take_header(char* data, std::size_t, std::size_t count, void* to) noexcept {
  try {
    return static_cast<fetch_attempt*>(to)->take_line({data, count}) ? count : 0;
  } catch (...) {
    return 0;   // exceptions must not propagate through libcurl's frames
  }
}

MILLRACE_INLINE std::size_t fetch_attempt::take_body(char* data, std::size_t, std::size_t count, void* to) noexcept {
  try {
    return static_cast<fetch_attempt*>(to)->take({reinterpret_cast<const std::byte*>(data), count}) ? count : 0;
  } catch (...) {
    return 0;
  }
}

MILLRACE_INLINE bool fetch_attempt::take_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    answer_.headers.clear();   // headers of an interim response
    const std::size_t blank = line.find(' ');
    answer_.status = blank == std::string_view::npos
                         ? 0
                         : static_cast<int>(decimal_number(line.substr(blank + 1, 3)).value_or(0));
    return true;
  }
  if (trimmed_http(line).empty()) return answer_.status < 200 || begin();
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos && answer_.headers.size() < 1'000)
    answer_.headers.emplace_back(trimmed_http(line.substr(0, colon)), trimmed_http(line.substr(colon + 1)));
  return true;
}

MILLRACE_INLINE bool fetch_attempt::begin() {
  first_byte_ns_ = steady_ns();
  range_fetch& fetch = *job_->fetch;
  const auto& expected = fetch.object()->identity;
  judged_ = judge_answer(range_, expected ? &*expected : nullptr, {answer_.status, answer_.headers});
  if (judged_.what == http_answer_kind::bytes && judged_.first_byte + max_skipped_bytes < range_.first_byte) {
    judged_.what = http_answer_kind::wrong;
    judged_.problem = "the server sent the complete object instead of the requested bytes";
  }
  at_byte_ = judged_.first_byte;
  if (judged_.what == http_answer_kind::bytes || judged_.what == http_answer_kind::nothing)
    fetch.begin(judged_.identity);
  return judged_.what != http_answer_kind::wrong && judged_.what != http_answer_kind::replaced;
}

MILLRACE_INLINE bool fetch_attempt::take(std::span<const std::byte> bytes) {
  received_bytes_ += bytes.size();
  if (judged_.what == http_answer_kind::bytes) {
    const std::uint64_t from = at_byte_;
    at_byte_ += bytes.size();
    if (from >= judged_.end_byte) return false;   // more than the server announced
    if (!job_->fetch->take(from, bytes)) return true;
    finished_ = true;
    return at_byte_ >= judged_.end_byte && at_byte_ <= range_.end_byte;   // otherwise the connection cannot be reused
  }
  if (judged_.what != http_answer_kind::other || answer_.body.size() >= max_refusal_bytes) return false;
  const std::size_t count = std::min(bytes.size(), max_refusal_bytes - answer_.body.size());
  answer_.body.append(reinterpret_cast<const char*>(bytes.data()), count);
  return true;
}

}}}   // namespace millrace::detail
