// A feeder in this process, with faults: it answers requests for rows from a table.
//
//   hostile_feeder one({.hello = text_of_trainer, .row = [](auto epoch, auto position) { return bytes; },
//                       .faults = {feeder_fault::none, feeder_fault::reset}});
//   mr::feeders({.hosts = {one.host()}});
#pragma once

#include <millrace/adapt/feeders/row_protocol.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

enum class feeder_fault {
  none,
  reset,
  flipped_bit,
  wrong_length,
  huge_length,
  short_answer,
  extra_row,
  missing_row,
  status_503,
  status_429,
  status_500,
  silent,
  slow_bytes,
  garbage
};

class hostile_feeder {
 public:
  struct settings {
    std::string hello{};   ///< its own text
    std::function<std::vector<std::byte>(std::uint64_t epoch, std::uint64_t position)> row{};
    std::vector<feeder_fault> faults{feeder_fault::none};   ///< of request n modulo their number
    std::string token{};
    int status = 0;   ///< of all answers, if it is not 0
    int port = 0;     ///< 0: a free one
    const char* address = "127.0.0.1";
    std::chrono::milliseconds delay{0};
  };

  explicit hostile_feeder(settings s) : settings_(std::move(s)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(settings_.port));
    ::inet_pton(AF_INET, settings_.address, &at.sin_addr);
    ::socklen_t size = sizeof at;
    if (::bind(listener_, reinterpret_cast<::sockaddr*>(&at), size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<::sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(at.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~hostile_feeder() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& t : threads_) t.join();
    for (const int socket : sockets_) ::close(socket);
    ::close(listener_);
  }

  int port() const { return port_; }
  std::string host() const { return settings_.address + (":" + std::to_string(port_)); }
  std::set<std::string> header_names() const {
    const std::lock_guard lock(mutex_);
    return header_names_;
  }

  std::atomic<std::size_t> hellos{0}, requests{0}, rows{0};

 private:
  void accept_all() {
    while (!stopping_) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) continue;
      const std::lock_guard lock(mutex_);
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }
  void serve(int socket) {
    std::string in;
    char buffer[4096];
    for (;;) {
      const std::size_t end = in.find("\r\n\r\n");
      if (end == std::string::npos) {
        const ::ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
        if (got <= 0) return;
        in.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      const std::string head = in.substr(0, end + 2);
      in.erase(0, end + 4);
      if (!answer(socket, head)) {
        ::shutdown(socket, SHUT_RDWR);
        return;
      }
    }
  }
  bool is_authorized(const std::string& head) {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size(); at = head.find("\r\n", at) + 2)
      header_names_.insert(head.substr(at, head.find(':', at) - at));
    return settings_.token.empty() || head.find("\r\nAuthorization: Bearer " + settings_.token + "\r\n") != head.npos;
  }
  bool answer(int socket, const std::string& head) {
    const std::string path = head.substr(4, head.find(' ', 4) - 4), run = millrace::detail::run_id(settings_.hello);
    if (!is_authorized(head)) return send(socket, 401, "no");
    if (settings_.status != 0) return send(socket, settings_.status, "<html>");
    const bool is_hello = path.ends_with("/hello");
    if (is_hello) ++hellos;
    if (path.substr(0, 4 + run.size()) != "/v1/" + run) return send(socket, 409, settings_.hello);
    if (is_hello) return send(socket, 200, settings_.hello);
    const millrace::row_range range = millrace::detail::parse_rows_path(path, {.run = run}).value();
    const feeder_fault what = settings_.faults[requests++ % settings_.faults.size()];
    std::this_thread::sleep_for(settings_.delay);
    using enum feeder_fault;
    if (what == reset) {
      const ::linger now{1, 0};
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      return false;
    }
    if (what == status_503) return send(socket, 503, "ends");
    if (what == status_429) return send(socket, 429, "busy");
    if (what == status_500) return send(socket, 500, "");
    while (what == silent && !stopping_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::vector<std::byte> body;
    for (std::size_t i = 0; i < range.count; ++i) {
      const auto row = settings_.row(range.epoch, range.first + i * range.step);
      if (what == missing_row && i == 0) millrace::detail::append_missing_row(body);
      else millrace::detail::append_row(body, row);
    }
    if (what == extra_row) millrace::detail::append_row(body, settings_.row(range.epoch, range.first));
    if (what == flipped_bit) body[8 + range.count % (body.size() - 8)] ^= std::byte{16};
    if (what == wrong_length) body[0] ^= std::byte{1};
    if (what == huge_length) body[3] = std::byte{0xff};
    if (what == garbage) std::fill(body.begin(), body.end(), std::byte{0xa5});
    std::string text(reinterpret_cast<const char*>(body.data()), body.size());
    const std::size_t announced = text.size();
    if (what == short_answer) text.resize(text.size() / 2);
    rows += range.count;
    return send(socket, 200, text, announced, what == slow_bytes) && what != short_answer;
  }
  bool send(int socket, int status, const std::string& body) { return send(socket, status, body, body.size(), false); }
  bool send(int socket, int status, const std::string& body, std::size_t announced, bool slowly) {
    const std::string all = "HTTP/1.1 " + std::to_string(status) +
                            " x\r\nMillrace-Workers: 2\r\nContent-Length: " + std::to_string(announced) + "\r\n\r\n" +
                            body;
    const std::size_t piece = slowly ? 7 : all.size();
    for (std::size_t at = 0; at < all.size();) {
      const ::ssize_t sent = ::send(socket, all.data() + at, std::min(piece, all.size() - at), MSG_NOSIGNAL);
      if (sent <= 0 || stopping_) return false;
      at += static_cast<std::size_t>(sent);
      if (slowly) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  const settings settings_;
  const int listener_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;   // guards the next members
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::set<std::string> header_names_;
  std::thread acceptor_;
};
