// The HTTP server of a feeder.
//
//   mr::detail::feeder_server server(rows, {.listen = "127.0.0.1:0", .token = secret}, 8);
//   server.address();                                    // 127.0.0.1:40123
//   while (running) server.close_slow();                 // about once per second
//   server.drain();                                      // completes the requests in progress, and refuses others
//
// The threads of libmicrohttpd receive requests and send answers; the workers of feeder_work compute rows. A connection
// whose rows are computed is suspended, so that no thread waits for a client or for a worker. If `max_requests`
// requests are in progress, a new request is accepted only if its rank has fewer than an equal share. Memory: 4 MiB for
// each request, or a row if that is larger, and 16 KiB for each connection.
// Errors: setup_error for options that are not valid; io_error if the server cannot listen or read a file.
// Threads: one thread calls close_slow() and drain(). Lifetime: the row_maker must outlive the server.
#pragma once

#if !__has_include(<microhttpd.h>)
#error "millrace: libmicrohttpd is not installed: apt-get install libmicrohttpd-dev"
#endif
#include <microhttpd.h>

#include <millrace/adapt/feeders/feed_rows_options.hpp>
#include <millrace/adapt/feeders/feeder_hosts.hpp>
#include <millrace/adapt/feeders/feeder_work.hpp>
#include <millrace/io/file/read_file.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Answers requests for the rows of one run.
class feeder_server {
 public:
  feeder_server(row_maker& rows, const feed_rows_options& options, std::size_t workers)
      : options_(checked_options(options)),
        max_requests_(options.max_requests > 0 ? options.max_requests : 4 * workers + 16),
        rules_(rules_of(rows, options.token)),
        work_(rows, workers) {
    listen();
  }
  ~feeder_server() {
    draining_.store(true);
    work_.stop();   // resumes all connections, which MHD_stop_daemon() requires
    MHD_stop_daemon(daemon_);
  }
  feeder_server(const feeder_server&) = delete;
  feeder_server& operator=(const feeder_server&) = delete;

  /// Returns the address and the port.
  const std::string& address() const noexcept { return address_; }
  /// Returns the number of requests that are computed or sent.
  std::size_t requests() const noexcept {
    const std::lock_guard lock(mutex_);
    return count_all();
  }

  /// Closes the connections of clients that have not received an answer within `patience`.
  void close_slow() noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = steady_now_ns();
    for (auto& [rank, all] : active_)
      for (request* const r : all)
        if (r->socket >= 0 && now - r->since_ns > nanoseconds()) {
          ::shutdown(std::exchange(r->socket, -1), SHUT_RDWR);
          ++closed_;
        }
  }

  /// Refuses new requests with the status 503, and waits at most `patience` until the earlier requests have been
  /// answered.
  void drain() noexcept {
    draining_.store(true);
    const std::uint64_t end = steady_now_ns() + nanoseconds();
    while (requests() > 0 && steady_now_ns() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

 private:
  /// A request, from its headers to the end of its answer.
  struct request {
    feeder_decision decision;
    std::shared_ptr<feeder_job> job{};   // null if the request is not for rows
    int socket = -1;                     // on which the rows are sent since `since_ns`
    std::uint64_t since_ns = 0;

    std::uint64_t rank() const noexcept { return decision.range.first % decision.range.step; }
  };

  static constexpr std::chrono::seconds max_patience{86'400};

  static const feed_rows_options& checked_options(const feed_rows_options& o) {
    if (o.certificate.empty() != o.key.empty())
      throw setup_error("feed_rows_options has " + std::string(o.key.empty() ? "a certificate" : "a key") +
                            " alone: expected both, or none for connections without TLS",
                        "Set certificate and key to files in the PEM format");
    if (o.patience.count() < 1 || o.patience > max_patience)
      throw setup_error("feed_rows_options::patience is out of range: got " + std::to_string(o.patience.count()) +
                            " s, expected 1 to " + std::to_string(max_patience.count()) + " s",
                        "Omit it to wait 20 s");
    if (!is_token(o.token))
      throw setup_error("feed_rows_options::token is not valid: got a space, a line end or another control "
                        "character, expected printable ASCII characters",
                        "Remove the line end if the token is from a file");
    return o;
  }
  static feeder_rules rules_of(const row_maker& rows, const std::string& token) {
    feeder_rules rules{.token = token,
                       .hello = hello_text(identity_of(rows.run())),
                       .max_rows = max_request_rows(rows.run().max_row_bytes)};
    rules.run = run_id(rules.hello);
    return rules;
  }
  std::uint64_t nanoseconds() const noexcept {
    return static_cast<std::uint64_t>(options_.patience.count()) * 1'000'000'000;
  }

  void listen() {
    const auto at = split_host_port(options_.listen);
    if (!at)
      throw setup_error("the address of a feeder is not valid: got \"" + printable(options_.listen, 200) +
                            "\", expected an address and a port of at most 65535",
                        "Write 0.0.0.0:8717, 127.0.0.1:8717 or [::]:8717");
    const std::string numeric = resolve_host(*at).at(0);
    if (options_.token.empty() && !numeric.starts_with("127.") && numeric != "::1")
      throw setup_error("a feeder that other machines can reach needs a token: got listen = \"" +
                            printable(options_.listen, 300) + "\" without a token",
                        "Set feed_rows_options::token to a secret of the run, or listen at 127.0.0.1");
    const bool secure = !options_.certificate.empty();
    const std::string certificate(secure ? read_file(options_.certificate).text() : "");
    const std::string key(secure ? read_file(options_.key).text() : "");
    std::vector<MHD_OptionItem> more;
    const auto add = [&more](MHD_OPTION option, std::intptr_t value, const void* pointer = nullptr) {
      more.push_back({option, value, const_cast<void*>(pointer)});
    };
    if (secure) {
      add(MHD_OPTION_HTTPS_MEM_CERT, 0, certificate.c_str());
      add(MHD_OPTION_HTTPS_MEM_KEY, 0, key.c_str());
      add(MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2");
    }
    // With TLS, a thread also encrypts the rows.
    const std::size_t threads = std::clamp<std::size_t>(work_.workers() / (secure ? 2 : 4), 1, 16);
    if (threads > 1) add(MHD_OPTION_THREAD_POOL_SIZE, static_cast<std::intptr_t>(threads));
    add(MHD_OPTION_END, 0);
    addrinfo hints{}, *address = nullptr;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (::getaddrinfo(numeric.c_str(), at->port.c_str(), &hints, &address) != 0) throw std::bad_alloc();
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(address, &::freeaddrinfo);
    const auto connections = static_cast<unsigned>(std::max<std::size_t>(connection_limit(1'024), threads));
    const unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           (secure ? MHD_USE_TLS : MHD_NO_FLAG) |
                           (address->ai_family == AF_INET6 ? MHD_USE_DUAL_STACK : MHD_NO_FLAG);
    errno = 0;
    daemon_ = MHD_start_daemon(flags, 0, nullptr, nullptr, &on_request, this, MHD_OPTION_SOCK_ADDR, address->ai_addr,
                               MHD_OPTION_NOTIFY_COMPLETED, &on_end, this, MHD_OPTION_UNESCAPE_CALLBACK, &keep_escapes,
                               nullptr, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                               connections - connections / 4,   // 8 ranks have one address
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, std::size_t{16} << 10, MHD_OPTION_CONNECTION_TIMEOUT,
                               static_cast<unsigned>(options_.patience.count()), MHD_OPTION_STRICT_FOR_CLIENT, 1,
                               MHD_OPTION_ARRAY, more.data(), MHD_OPTION_END);
    if (daemon_) {
      const unsigned port = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
      address_ = host_port{at->host, std::to_string(port)}.name();
    } else if (!secure || errno == EADDRINUSE || errno == EADDRNOTAVAIL || errno == EACCES) {
      throw io_error("the feeder cannot listen at " + printable(options_.listen, 300) + ": " +
                         (errno == 0 ? "libmicrohttpd did not start" : std::strerror(errno)),
                     "Use a free port and an address of this machine");
    } else {
      throw setup_error("the feeder cannot start with the certificate " + printable(options_.certificate, 300) +
                            " and the key " + printable(options_.key, 300) +
                            ": expected a pair in the PEM format, and a libmicrohttpd with TLS",
                        "Check that the files are not exchanged, and that the key belongs to the certificate");
    }
  }

  /// Does not decode %XX in paths, because no path of a feeder contains it.
  static std::size_t keep_escapes(void*, MHD_Connection*, char* text) noexcept { return std::strlen(text); }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char*, std::size_t*, void** state) noexcept {
    auto& server = *static_cast<feeder_server*>(self);
    try {
      if (!*state) {
        request& r = *new request{server.first_decision(connection, path, method)};
        *state = &r;   // on_end() deletes it
        // The answer to a request with a body is sent before the body arrives, and closes the connection.
        return r.decision.status == 413 || r.decision.status == 405 ? server.answer(connection, r) : MHD_YES;
      }
      return server.answer(connection, *static_cast<request*>(*state));
    } catch (...) {
      return MHD_NO;   // out of memory: the connection is closed
    }
  }
  static void on_end(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode code) noexcept {
    const std::unique_ptr<request> of(static_cast<request*>(*state));
    *state = nullptr;
    if (of) static_cast<feeder_server*>(self)->end(*of, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
  }

  feeder_decision first_decision(MHD_Connection* connection, const char* path, const char* method) const {
    const auto header = [connection](const char* name) {
      return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    };
    const char* const authorization = header(MHD_HTTP_HEADER_AUTHORIZATION);
    const char* const length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
    return decide({.method = method,
                   .path = path,
                   .authorization = authorization ? authorization : "",
                   .has_body = (length && std::string_view(length) != "0") ||
                               header(MHD_HTTP_HEADER_TRANSFER_ENCODING) != nullptr},
                  rules_);
  }

  MHD_Result answer(MHD_Connection* connection, request& r) {
    feeder_decision& d = r.decision;
    const bool draining = draining_.load();
    switch (d.action) {
      case feeder_action::health: return send_text(connection, draining ? 503 : 200, draining ? "draining\n" : "ok\n");
      case feeder_action::metrics: return send_text(connection, 200, metrics());
      case feeder_action::text:
        if (d.status != 200) ++refused_;
        return send_text(connection, draining ? 503 : d.status, d.text);
      case feeder_action::rows: break;
    }
    if (r.job) return send_rows(connection, r);
    auto job = std::make_shared<feeder_job>();
    job->range = d.range;
    job->done = [connection] { MHD_resume_connection(connection); };
    feeder_work::jobs one{job};
    if (draining || !accepts(r)) {
      ++busy_;
      return send_text(connection, draining ? 503 : 429, draining ? "the feeder ends\n" : "the feeder is busy\n");
    }
    r.job = std::move(job);   // from here on, end() subtracts the request
    MHD_suspend_connection(connection);
    work_.submit(one);
    return MHD_YES;
  }

  /// Counts a request, unless too many are in progress. Returns whether it was counted.
  bool accepts(request& r) {
    const std::lock_guard lock(mutex_);
    const std::size_t all = count_all();
    std::set<request*>& mine = active_[r.rank()];
    const std::size_t share = std::max<std::size_t>(max_requests_ / active_.size(), 1);
    if (all < max_requests_ || (mine.size() < share && all < 2 * max_requests_)) return mine.insert(&r).second;
    if (mine.empty()) active_.erase(r.rank());
    return false;
  }
  std::size_t count_all() const noexcept {
    std::size_t all = 0;
    for (const auto& [rank, requests] : active_) all += requests.size();
    return all;
  }

  MHD_Result send_text(MHD_Connection* connection, unsigned status, const std::string& text) {
    return send(connection, status,
                MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY));
  }
  MHD_Result send_rows(MHD_Connection* connection, request& r) {
    feeder_job& job = *r.job;
    if (job.status != 200) {
      if (job.status == 400) ++refused_;
      return send_text(connection, job.status, job.error + "\n");
    }
    std::vector<MHD_IoVec> parts;
    for (const auto& part : job.parts) parts.push_back({part.data(), part.size()});
    if (const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)) {
      const std::lock_guard lock(mutex_);
      r.socket = info->connect_fd, r.since_ns = steady_now_ns();
    }
    auto owner = std::make_unique<std::shared_ptr<feeder_job>>(r.job);
    MHD_Response* const response = MHD_create_response_from_iovec(
        parts.data(), static_cast<unsigned>(parts.size()),
        [](void* of) { delete static_cast<std::shared_ptr<feeder_job>*>(of); }, owner.get());
    if (response) static_cast<void>(owner.release());
    return send(connection, 200, response);
  }
  MHD_Result send(MHD_Connection* connection, unsigned status, MHD_Response* response) {
    if (!response) return MHD_NO;
    const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> own(response, &MHD_destroy_response);
    MHD_add_response_header(response, workers_header, std::to_string(workers_of_rank()).c_str());
    if (status == 503) MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (status == 401) MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (status == 503) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return MHD_queue_response(connection, status, response);   // the connection shares it
  }

  void end(request& r, bool complete) noexcept {
    if (!r.job) return;
    const std::lock_guard lock(mutex_);
    const auto mine = active_.find(r.rank());
    mine->second.erase(&r);
    if (mine->second.empty()) active_.erase(mine);
    if (complete)
      for (const auto& part : r.job->parts) sent_bytes_ += part.size();
  }

  std::size_t workers_of_rank() {
    const std::lock_guard lock(mutex_);
    const std::size_t ranks = std::max<std::size_t>(active_.size(), 1);
    return (work_.workers() + ranks - 1) / ranks;
  }

  /// Returns the metrics in the text format of Prometheus.
  std::string metrics() {
    std::string text;
    const auto add = [&text](const std::string& name, const char* help, auto value) {
      const std::string full = "millrace_feeder_" + name, type = name.ends_with("_total") ? "counter" : "gauge";
      text += "# HELP " + full + " " + help + "\n# TYPE " + full + " " + type + "\n" + full + " " +
              std::to_string(value) + "\n";
    };
    const std::lock_guard lock(mutex_);
    add("rows_total", "Computed rows.", work_.computed.load());
    add("failed_rows_total", "Rows that could not be computed.", work_.failed.load());
    add("sent_bytes_total", "Bytes of the bodies of completed answers.", sent_bytes_.load());
    add("refused_requests_total", "Requests with a status of 400 to 413.", refused_.load());
    add("busy_requests_total", "Requests with the status 429 or 503.", busy_.load());
    add("closed_connections_total", "Connections of clients that received too slowly.", closed_.load());
    add("busy_seconds_total", "Time of all workers together.", 1e-9 * static_cast<double>(work_.busy_ns.load()));
    add("workers", "Number of workers.", work_.workers());
    add("ranks", "Ranks with requests in work.", active_.size());
    add("requests", "Requests for rows that are computed or sent.", count_all());
    add("max_requests", "Maximum of requests.", max_requests_);
    add("draining", "1 after SIGTERM.", draining_.load() ? 1 : 0);
    return text;
  }

  const feed_rows_options options_;
  const std::size_t max_requests_;
  const feeder_rules rules_;
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> sent_bytes_{0}, refused_{0}, busy_{0}, closed_{0};
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::set<request*>> active_;   // requests in progress of each rank; guarded by mutex_
  std::string address_;
  feeder_work work_;
  MHD_Daemon* daemon_ = nullptr;
};

}}}   // namespace millrace::detail
