// Definitions for fetch_attempt.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_attempt.hpp>

#include <millrace/adapt/remote/transfer/fetch_job.hpp>

#include <algorithm>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
  if (judged_.what == answer_kind::wrong) return {wrong, judged_.problem};
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
  if (trimmed(line).empty()) return answer_.status < 200 || begin();
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos && answer_.headers.size() < 1'000)
    answer_.headers.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  return true;
}

MILLRACE_INLINE bool fetch_attempt::begin() {
  first_byte_ns_ = steady_ns();
  range_fetch& fetch = *job_->fetch;
  const auto& expected = fetch.object()->identity;
  judged_ = judge(range_, expected ? &*expected : nullptr, {answer_.status, answer_.headers});
  if (judged_.what == answer_kind::bytes && judged_.first_byte + max_skipped_bytes < range_.first_byte) {
    judged_.what = answer_kind::wrong;
    judged_.problem = "the server sent the complete object instead of the requested bytes";
  }
  at_byte_ = judged_.first_byte;
  if (judged_.what == answer_kind::bytes || judged_.what == answer_kind::nothing) fetch.begin(judged_.identity);
  return judged_.what != answer_kind::wrong && judged_.what != answer_kind::replaced;
}

MILLRACE_INLINE bool fetch_attempt::take(std::span<const std::byte> bytes) {
  received_bytes_ += bytes.size();
  if (judged_.what == answer_kind::bytes) {
    const std::uint64_t from = at_byte_;
    at_byte_ += bytes.size();
    if (from >= judged_.end_byte) return false;   // more than the server announced
    if (!job_->fetch->take(from, bytes)) return true;
    finished_ = true;
    return at_byte_ >= judged_.end_byte && at_byte_ <= range_.end_byte;   // otherwise the connection cannot be reused
  }
  if (judged_.what != answer_kind::other || answer_.body.size() >= max_refusal_bytes) return false;
  const std::size_t count = std::min(bytes.size(), max_refusal_bytes - answer_.body.size());
  answer_.body.append(reinterpret_cast<const char*>(bytes.data()), count);
  return true;
}

}}}   // namespace millrace::detail
