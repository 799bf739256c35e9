// The HTTP server of a feeder, a program that computes rows for trainers on other machines.
//
//   mr::detail::feeder_server server(rows, {.listen = "127.0.0.1:0", .token = secret}, 8);
//   server.address();                                    // 127.0.0.1:40123
//   while (running) server.close_slow();                 // about once per second
//   server.drain();                                      // completes the requests in progress, and refuses others
//
// libmicrohttpd has a thread for each connection. The thread waits until the workers have computed the rows of its
// request, and then sends these rows. The share of a rank is `max_requests` divided by the number of ranks with
// requests. If `max_requests` requests are in progress, only a rank below its share may send a new request.
// Memory: 4 MiB for each request, or the size of a row if that is larger; 16 KiB for each connection.
// Errors: setup_error for options that are not valid; io_error if the server cannot listen or read a file.
// Threads: one thread calls close_slow() and drain(). Lifetime: the row_maker must outlive the server.
#pragma once

#if !__has_include(<microhttpd.h>)
#error "millrace: libmicrohttpd is not installed: apt-get install libmicrohttpd-dev"
#endif
#include <microhttpd.h>

#include <millrace/adapt/feeders/feed_rows_options.hpp>
#include <millrace/adapt/feeders/feeder_hosts.hpp>
#include <millrace/adapt/feeders/row_maker.hpp>
#include <millrace/base/clock.hpp>
#include <millrace/io/file/read_file.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/start_thread.hpp>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <set>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Answers requests for the rows of one run.
class feeder_server {
 public:
  feeder_server(row_maker& rows, const feed_rows_options& options, std::size_t workers)
      : options_(options),
        max_requests_(options.max_requests > 0 ? options.max_requests : 4 * workers + 16),
        rows_(rows),
        workers_(workers) {
    rules_.token = options.token;
    rules_.hello = hello_text(rows.run());
    rules_.run = run_id(rules_.hello);
    rules_.max_rows = max_request_rows(rows.run().max_row_bytes);
    listen();
    try {
      start_threads(threads_, workers, [this](std::size_t worker) {
        name_worker_thread("millrace-feeder");
        work(worker);
      });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~feeder_server() { stop(); }
  feeder_server(const feeder_server&) = delete;
  feeder_server& operator=(const feeder_server&) = delete;

  /// Returns the address and the port.
  const std::string& address() const noexcept { return address_; }
  /// Returns the number of requests whose rows are being computed or sent.
  std::size_t requests() const noexcept {
    const std::lock_guard lock(mutex_);
    return active_.size();
  }

  /// Closes each connection whose client is too slow to send its next request or to receive its rows. libmicrohttpd
  /// itself closes only connections without any activity.
  void close_slow() noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = steady_now_ns();
    for (client_connection& c : connections_)
      if (c.end_ns < now) {
        ::shutdown(c.socket, SHUT_RDWR);
        c.end_ns = client_connection::no_limit;
        ++closed_;
      }
  }

  /// Refuses new requests with the status 503, and waits at most `patience` until the earlier requests have been
  /// answered.
  void drain() noexcept {
    draining_.store(true);
    const std::uint64_t end = steady_now_ns() + patience_ns();
    while (requests() > 0 && steady_now_ns() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

 private:
  static constexpr std::size_t max_part_rows = 16;

  static void expect(bool good, const std::string& problem, const char* hint) {
    if (!good) throw setup_error("feed_rows_options " + problem, hint);
  }
  std::uint64_t patience_ns() const noexcept {
    return static_cast<std::uint64_t>(options_.patience.count()) * 1'000'000'000;
  }

  /// Checks the options and starts the server.
  void listen() {
    const feed_rows_options& o = options_;
    expect(o.certificate.empty() == o.key.empty(),
           "has only one of certificate and key: expected both, or neither for connections without TLS",
           "Set certificate and key to files in the PEM format");
    expect(o.patience.count() >= 1 && o.patience <= std::chrono::hours(24),
           "patience is out of range: got " + std::to_string(o.patience.count()) + " s, expected 1 to 86400 s",
           "Omit it to wait 20 s");
    expect(is_token(o.token),
           "token is not valid: got a space, a line end or another control character, expected printable ASCII "
           "characters",
           "Remove the line end if the token is from a file");
    const auto at = split_host_port(o.listen);
    const std::string listen = "listen = \"" + printable(o.listen, 200) + "\" ";
    expect(at.has_value(), listen + "is not valid: expected an address and a port of at most 65535",
           "Write 0.0.0.0:8717, 127.0.0.1:8717 or [::]:8717");
    const std::string numeric = resolve_host(*at).at(0);
    expect(!o.token.empty() || numeric.starts_with("127.") || numeric == "::1",
           listen + "needs a token, because other machines can reach the feeder",
           "Set feed_rows_options::token to a secret of the run, or listen at 127.0.0.1");
    const bool secure = !o.certificate.empty();
    const std::string certificate(secure ? read_file(o.certificate).text() : "");
    const std::string key(secure ? read_file(o.key).text() : "");
    const auto text = [](const std::string& of) { return const_cast<char*>(of.c_str()); };
    MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, text(certificate)},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, text(key)},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>("NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2")},
        {MHD_OPTION_END, 0, nullptr}};
    addrinfo hints{}, *address = nullptr;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (::getaddrinfo(numeric.c_str(), at->port.c_str(), &hints, &address) != 0) throw std::bad_alloc();
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(address, &::freeaddrinfo);
    const auto connections = static_cast<unsigned>(feeder_connection_limit(1'024));
    const unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                           (secure ? MHD_USE_TLS : MHD_NO_FLAG) |
                           (address->ai_family == AF_INET6 ? MHD_USE_DUAL_STACK : MHD_NO_FLAG);
    errno = 0;
    daemon_ = MHD_start_daemon(flags, 0, nullptr, nullptr, &on_request, this, MHD_OPTION_SOCK_ADDR, address->ai_addr,
                               MHD_OPTION_NOTIFY_CONNECTION, &on_connection, this, MHD_OPTION_NOTIFY_COMPLETED, &on_end,
                               this, MHD_OPTION_UNESCAPE_CALLBACK, &keep_escapes, nullptr, MHD_OPTION_CONNECTION_LIMIT,
                               connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                               connections - connections / 4,   // for one IP address: all ranks of a machine
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, std::size_t{16} << 10, MHD_OPTION_CONNECTION_TIMEOUT,
                               static_cast<unsigned>(o.patience.count()), MHD_OPTION_STRICT_FOR_CLIENT, 1,
                               MHD_OPTION_ARRAY, secure ? tls : tls + 3, MHD_OPTION_END);
    const int code = errno;
    if (daemon_) {
      const unsigned port = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
      address_ = feeder_host{at->host, std::to_string(port)}.name();
    } else {
      expect(!secure || code == EADDRINUSE || code == EADDRNOTAVAIL || code == EACCES,
             "cannot start with the certificate " + printable(o.certificate, 300) + " and the key " +
                 printable(o.key, 300) + ": expected a pair in the PEM format, and a libmicrohttpd with TLS",
             "Check that the files are not exchanged, and that the key belongs to the certificate");
      throw io_error("the feeder cannot listen at " + printable(o.listen, 300) + ": " +
                         (code == 0 ? "libmicrohttpd did not start" : std::strerror(code)),
                     "Use a free port and an address of this machine");
    }
  }

  /// Does not decode %XX in paths, because no path of a feeder contains it.
  static std::size_t keep_escapes(void*, MHD_Connection*, char* text) noexcept { return std::strlen(text); }

  static void on_connection(void* self, MHD_Connection* connection, void** state,
                            MHD_ConnectionNotificationCode code) noexcept {
    auto& server = *static_cast<feeder_server*>(self);
    const std::lock_guard lock(server.mutex_);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      server.connections_.remove_if([state](const client_connection& c) { return &c == *state; });
    } else if (const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)) {
      try {
        auto& added = server.connections_.emplace_front(client_connection{.socket = info->connect_fd});
        added.set_limit(2 * server.patience_ns());
        *state = &added;
      } catch (const std::bad_alloc&) {   // on_request() closes the connection
      }
    }
  }
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char*, std::size_t*, void** state) noexcept {
    auto& server = *static_cast<feeder_server*>(self);
    try {
      if (*state) return server.answer(connection, *static_cast<client_request*>(*state));
      const auto header = [connection](const char* name) {
        const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
        return std::string_view(value ? value : "");
      };
      const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
      if (!info || !info->socket_context) return MHD_NO;
      auto& from = *static_cast<client_connection*>(info->socket_context);
      const std::string_view length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
      const bool has_body = (!length.empty() && length != "0") || !header(MHD_HTTP_HEADER_TRANSFER_ENCODING).empty();
      client_request& r = *new client_request{from, decide_feed({.method = method,
                                                                 .path = path,
                                                                 .authorization = header(MHD_HTTP_HEADER_AUTHORIZATION),
                                                                 .has_body = has_body},
                                                                server.rules_)};
      *state = &r;   // on_end() deletes it
      {
        const std::lock_guard lock(server.mutex_);
        from.end_ns = client_connection::no_limit;
      }
      // A request with a body is answered before the body arrives. libmicrohttpd then closes the connection.
      return r.decision.status == 413 || r.decision.status == 405 ? server.answer(connection, r) : MHD_YES;
    } catch (...) {
      return MHD_NO;   // out of memory: the connection is closed
    }
  }
  static void on_end(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode code) noexcept {
    const std::unique_ptr<client_request> of(static_cast<client_request*>(*state));
    *state = nullptr;
    if (!of) return;
    auto& server = *static_cast<feeder_server*>(self);
    const std::lock_guard lock(server.mutex_);
    of->from.set_limit(2 * server.patience_ns());
    std::erase(server.active_, of.get());
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && of->status == 200)
      for (const auto& part : of->parts) server.sent_bytes_ += part.size();
  }

  MHD_Result answer(MHD_Connection* connection, client_request& r) {
    const feeder_decision& d = r.decision;
    const bool draining = draining_.load();
    switch (d.action) {
      case feeder_action::health: return send_text(connection, draining ? 503 : 200, draining ? "draining\n" : "ok\n");
      case feeder_action::metrics: return send_text(connection, 200, metrics());
      case feeder_action::text:
        if (d.status != 200) ++refused_;
        return send_text(connection, draining ? 503 : d.status, d.text);
      case feeder_action::rows: break;
    }
    if (draining || !accepts(r)) {
      ++busy_;
      return send_text(connection, draining ? 503 : 429, draining ? "the feeder ends\n" : "the feeder is busy\n");
    }
    try {
      r.samples = rows_.samples_of(d.range);
    } catch (const setup_error& e) {
      ++refused_;
      return send_text(connection, 400, std::string(e.what()) + "\n");
    }
    r.part_rows = std::clamp<std::size_t>(r.samples.size() / workers_, 1, max_part_rows);
    r.missing = (r.samples.size() - 1) / r.part_rows + 1;
    r.parts.resize(r.missing);
    std::vector<MHD_IoVec> parts;
    std::unique_lock lock(mutex_);
    if (stopping_) {
      r.status = 503;
    } else {
      queue_.push_back(&r);
      queued_.notify_all();
      computed_all_.wait(lock, [&r] { return r.missing == 0; });
    }
    r.from.set_limit(patience_ns());
    lock.unlock();
    if (r.status != 200) return send_text(connection, r.status, "the rows could not be computed\n");
    for (const auto& part : r.parts) parts.push_back({part.data(), part.size()});
    return send(connection, 200,   // on_end() deletes the rows
                MHD_create_response_from_iovec(parts.data(), static_cast<unsigned>(parts.size()), nullptr, nullptr));
  }

  /// Adds a request to active_, unless too many are in progress. Returns whether it was added.
  bool accepts(client_request& r) {
    const std::lock_guard lock(mutex_);
    active_.push_back(&r);
    const auto mine = static_cast<std::size_t>(
        std::count_if(active_.begin(), active_.end(), [&r](const client_request* a) { return a->rank() == r.rank(); }));
    const bool has_share = mine <= std::max<std::size_t>(max_requests_ / ranks(), 1);
    if (active_.size() <= max_requests_ || (has_share && active_.size() <= 2 * max_requests_)) return true;
    active_.pop_back();
    return false;
  }
  /// Returns the number of ranks with requests in progress.
  std::size_t ranks() const {
    std::set<std::uint64_t> all;
    for (const client_request* const r : active_) all.insert(r->rank());
    return all.size();
  }

  /// Computes the parts of requests (groups of at most max_part_rows rows) until stop().
  void work(std::size_t worker) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      queued_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      client_request& r = *queue_.front();
      if (r.from.is_closed()) {   // nobody receives the other parts
        queue_.pop_front();
        r.status = 503;
        r.missing -= r.parts.size() - r.next;
        if (r.missing == 0) computed_all_.notify_all();
        continue;
      }
      const std::size_t part = r.next++;
      if (r.next == r.parts.size()) queue_.pop_front();
      lock.unlock();
      const std::uint64_t start_ns = steady_now_ns();
      bool is_good = true;
      try {
        const std::size_t first = part * r.part_rows, count = std::min(r.part_rows, r.samples.size() - first);
        r.parts[part].reserve(count * (feeder_row_decoder::header_bytes + rows_.run().max_row_bytes));
        const std::size_t missing = rows_.compute(std::span(r.samples).subspan(first, count), worker, r.parts[part]);
        failed_ += missing;
        computed_ += count - missing;
      } catch (...) {   // out of memory
        is_good = false;
      }
      busy_ns_ += steady_now_ns() - start_ns;
      lock.lock();
      if (!is_good) r.status = 500;
      if (--r.missing == 0) computed_all_.notify_all();
    }
  }
  /// Ends the threads. Refuses requests with parts that no worker has begun.
  void stop() noexcept {
    draining_.store(true);
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    queued_.notify_all();
    for (std::thread& t : threads_) t.join();
    {
      const std::lock_guard lock(mutex_);
      for (client_request* const r : queue_) r->status = 503, r->missing = 0;
    }
    computed_all_.notify_all();
    MHD_stop_daemon(daemon_);   // waits for the threads of connections
  }

  MHD_Result send_text(MHD_Connection* connection, unsigned status, const std::string& text) {
    return send(connection, status,
                MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY));
  }
  MHD_Result send(MHD_Connection* connection, unsigned status, MHD_Response* response) {
    if (!response) return MHD_NO;
    const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> own(response, &MHD_destroy_response);
    MHD_add_response_header(response, workers_header, std::to_string(workers_of_rank()).c_str());
    if (status == 503) MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (status == 401) MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (status == 503) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return MHD_queue_response(connection, status, response);   // the connection also owns the response
  }
  std::size_t workers_of_rank() {
    const std::lock_guard lock(mutex_);
    const std::size_t shares = std::max<std::size_t>(ranks(), 1);
    return (workers_ + shares - 1) / shares;
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
    add("rows_total", "Computed rows.", computed_.load());
    add("failed_rows_total", "Rows that could not be computed.", failed_.load());
    add("sent_bytes_total", "Bytes of the bodies of completed answers.", sent_bytes_.load());
    add("refused_requests_total", "Requests with a status of 400 to 413.", refused_.load());
    add("busy_requests_total", "Requests with the status 429 or 503.", busy_.load());
    add("closed_connections_total", "Connections of clients that sent or received too slowly.", closed_.load());
    add("busy_seconds_total", "Time of all workers together.", 1e-9 * static_cast<double>(busy_ns_.load()));
    add("workers", "Number of workers.", workers_);
    add("ranks", "Ranks with requests in work.", ranks());
    add("requests", "Requests for rows that are computed or sent.", active_.size());
    add("max_requests", "Maximum of requests.", max_requests_);
    add("draining", "1 after SIGTERM.", draining_.load() ? 1 : 0);
    return text;
  }

  const feed_rows_options options_;
  const std::size_t max_requests_;
  row_maker& rows_;
  const std::size_t workers_;
  feeder_rules rules_;
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> computed_{0}, failed_{0}, sent_bytes_{0}, refused_{0}, busy_{0}, closed_{0}, busy_ns_{0};
  mutable std::mutex mutex_;   // guards the next four members, and the progress of requests
  std::list<client_connection> connections_;
  std::vector<client_request*> active_;   // requests in progress
  std::deque<client_request*> queue_;     // requests with parts that no worker has begun
  bool stopping_ = false;
  std::condition_variable queued_, computed_all_;
  std::vector<std::thread> threads_;
  std::string address_;
  MHD_Daemon* daemon_ = nullptr;
};

}}}   // namespace millrace::detail
