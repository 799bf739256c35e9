// Reads from a web server that refuses old headers: the run waits for new ones.
#include <millrace/adapt/remote.hpp>

#include <millrace/io/file/read_file.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mr = millrace;

namespace {

using header_list = std::vector<std::pair<std::string, std::string>>;

/// A server of one object of five bytes, which refuses all requests without the current header.
class picky_server {
 public:
  picky_server() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_, generic, bytes) != 0 || ::listen(socket_, 64) != 0 ||
        ::getsockname(socket_, generic, &bytes) != 0)
      throw std::runtime_error("no server on the loopback interface");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (;;) {
        const int client = ::accept(socket_, nullptr, nullptr);
        if (client < 0) return;
        answer(client);
        ::close(client);
      }
    });
  }
  ~picky_server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }

  std::string url(const char* name) const { return "http://127.0.0.1:" + std::to_string(port_) + "/" + name; }

  std::atomic<int> accepted{1}, refusals{0};   // the number of the accepted token

 private:
  void answer(int client) {
    std::string request;
    char text[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(client, text, sizeof text, 0);
      if (got <= 0) return;
      request.append(text, static_cast<std::size_t>(got));
    }
    const bool good = request.find("X-Token: " + std::to_string(accepted) + "\r\n") != std::string::npos;
    if (!good) ++refusals;
    const std::string reply =
        good ? "HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Range: bytes 0-4/5\r\nContent-Length: 5\r\n"
               "Connection: close\r\n\r\nhello"
             : "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (std::size_t sent = 0; sent < reply.size();) {
      const ssize_t now = ::send(client, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) return;
      sent += static_cast<std::size_t>(now);
    }
  }

  const int socket_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a read waits for late headers, at its first request and later") {
  picky_server server;
  std::atomic<int> first_requests{0}, late_requests{0};
  std::vector<std::string> notices;
  const auto token = [](int number) { return header_list{{"X-Token", std::to_string(number)}}; };
  const mr::storage at = mr::remote({.current_headers = [&]() -> header_list {
                                       if (++first_requests < 3) throw mr::setup_error("half of a file", "Wait");
                                       if (server.accepted == 1) return token(1);
                                       return token(++late_requests < 2 ? 1 : 2);
                                     },
                                     .notice = [&](const mr::notice& n) {
                                       if (n.kind == mr::notice_kind::keys) notices.push_back(n.text);
                                     },
                                     .retry = {.limit = std::chrono::minutes(2)}});
  CHECK(mr::read_file(server.url("first"), at).text() == "hello");
  CHECK(first_requests == 3);
  CHECK(server.refusals == 0);
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("half of a file") != std::string::npos);
  CHECK(notices[0].find("searches for new keys for up to 7 s") != std::string::npos);
  server.accepted = 2;
  CHECK(mr::read_file(server.url("second"), at).text() == "hello");
  CHECK(late_requests == 2);
  CHECK(server.refusals > 0);
}

TEST_CASE("headers that a server accepted are requested again as long as transfers are retried") {
  picky_server server;
  std::atomic<int> first_requests{0};
  std::vector<std::string> notices;
  const mr::storage at = mr::remote({.current_headers = [&] {
                                       // The first request for keys, and one that is too early.
                                       return header_list{{"X-Token", ++first_requests < 3 ? "1" : "2"}};
                                     },
                                     .notice = [&](const mr::notice& n) {
                                       if (n.kind == mr::notice_kind::keys) notices.push_back(n.text);
                                     },
                                     .retry = {.limit = std::chrono::minutes(2)}});
  CHECK(mr::read_file(server.url("first"), at).text() == "hello");
  server.accepted = 2;
  CHECK(mr::read_file(server.url("second"), at).text() == "hello");
  CHECK(first_requests == 3);
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("searches for new keys for up to 120 s") != std::string::npos);
}
