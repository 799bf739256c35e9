// Requests to web servers: their addresses, the rule of retries, and headers that change while a run reads.
#include <millrace/adapt/remote.hpp>
#include <millrace/adapt/remote/transfer/request_addresses.hpp>
#include <millrace/adapt/remote/transfer/retry_rule.hpp>
#include <millrace/io/file/read_file.hpp>

#include <arpa/inet.h>
#include <doctest/doctest.h>
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

TEST_CASE("names of web servers become URLs that can be sent, with the user's headers") {
  mr::detail::request_addresses addresses({.headers = {{"Authorization", "Bearer x"}}});
  CHECK(addresses.address("https://h/a b#c").url == "https://h/a%20b");
  CHECK(addresses.address("http://h/\xc3\xbc").url == "http://h/%C3%BC");
  CHECK(addresses.address("http://h/%20?q=1").url == "http://h/%20?q=1");
  CHECK(addresses.address("http://h/").headers == mr::detail::header_list{{"Authorization", "Bearer x"}});
  CHECK_THROWS_WITH_AS(addresses.address("ftp://h/a"),
                       doctest::Contains("got ftp://h/a, expected http://, https://, s3:// or gs://"), mr::setup_error);
  CHECK_THROWS_WITH_AS(addresses.list("https://h/a*"), doctest::Contains("web servers cannot list their files"),
                       mr::setup_error);
}

TEST_CASE("headers of web servers may expire, and are requested again after a refusal") {
  using kind = mr::detail::remedy::kind;
  std::string token = "one";
  mr::detail::request_addresses addresses({.headers = {{"X-A", "b"}}, .current_headers = [&] {
    return std::vector<std::pair<std::string, std::string>>{{"Authorization", "Bearer " + token}};
  }, .retry = {.limit = {}}});
  const auto first = addresses.address("https://h/a");
  CHECK(first.headers == mr::detail::header_list{{"X-A", "b"}, {"Authorization", "Bearer one"}});
  token = "two";
  CHECK(addresses.handle_refusal("https://h/a", first, {.status = 404}).what == kind::none);
  CHECK(addresses.handle_refusal("https://h/a", first, {.status = 401}).what == kind::at_once);
  const auto second = addresses.address("https://h/a");
  CHECK(second.headers.back().second == "Bearer two");
  const auto last = addresses.handle_refusal("https://h/a", second, {.status = 403});
  CHECK(last.what == kind::none);
  CHECK_THROWS_WITH(throw addresses.failure("https://h/a", second, {.status = 403}, last.attempted),
                    doctest::Contains("got status 403, expected 206; searched for other keys 1 time in 0 s"));
  mr::detail::request_addresses fixed({.headers = {{"Authorization", "Bearer one"}}});
  CHECK(fixed.handle_refusal("https://h/a", fixed.address("https://h/a"), {.status = 401}).what == kind::none);
}

TEST_CASE("headers that a web server accepted once are requested again as long as transfers are retried") {
  using kind = mr::detail::remedy::kind;
  std::string notice;
  mr::detail::request_addresses addresses(
      {.current_headers = [] { return std::vector<std::pair<std::string, std::string>>{{"X-Token", "a"}}; },
       .notice = [&](const mr::notice& n) { notice = n.text; },
       .retry = {.limit = std::chrono::minutes(2)}});
  const auto sent = addresses.address("https://h/a");
  addresses.accepted("https://h/a", sent);
  CHECK(addresses.handle_refusal("https://h/a", sent, {.status = 401}).what == kind::later);
  CHECK(notice.find("searches for new credentials for up to 120 s") != std::string::npos);
}

TEST_CASE("passwords and queries are not reported") {
  using mr::detail::without_secrets;
  CHECK(without_secrets("https://me:hush@host:1/a.tar?X-Amz-Signature=hush") == "https://host:1/a.tar?...");
  CHECK(without_secrets("https://host/a@b.tar") == "https://host/a@b.tar");
  CHECK(without_secrets("s3://bucket/key?x") == "s3://bucket/key?x");
}

TEST_CASE("a server's words are shown if they are text") {
  const auto words = [](const std::string& type, const std::string& body) {
    return mr::detail::request_addresses::refusal_message(
        {.status = 503, .headers = {{"Content-Type", type}}, .body = body});
  };
  CHECK(words("text/plain; charset=utf-8", " come back\nlater") == " (come back)");
  CHECK(words("application/json", R"({"error":"busy"})") == R"( ({"error":"busy"}))");
  CHECK(words("text/html", "<html>busy</html>") == "");
  CHECK(words("text/plain", "") == "");
  CHECK(words("application/xml", "<Error><Code>SlowDown</Code><Message>Reduce</Message></Error>") ==
        " (SlowDown: Reduce)");
}

TEST_CASE("options out of their range are refused, and nothing is connected before a name is opened") {
  for (const mr::remote_options& wrong :
       {mr::remote_options{.requests = 0}, mr::remote_options{.part_bytes = 1},
        mr::remote_options{.part_bytes = 1 << 20, .memory_bytes = 1 << 19},
        mr::remote_options{.connect_limit = {}}, mr::remote_options{.stall_limit = std::chrono::seconds(-1)},
        mr::remote_options{.retry = {.attempts = 0}}, mr::remote_options{.hedge = {.share = 0.9}}})
    CHECK_THROWS_AS(mr::remote(wrong), mr::setup_error);
  const auto place = mr::remote();
  CHECK(place.statistics().requests == 0);
  CHECK(mr::to_text(place.statistics()).find("given up 0") != std::string::npos);
  const mr::storage as_storage = place;
  CHECK_FALSE(as_storage.is_local());
}

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

}  // namespace

TEST_CASE("pauses double up to a bound, are drawn from 0 on, and are at least as long as the server requests") {
  const mr::remote_retries rule{.attempts = 100,
                                .limit = std::chrono::seconds(1'000'000),
                                .first_pause = std::chrono::seconds(1),
                                .longest_pause = std::chrono::seconds(5)};
  mr::detail::retry_state state(0);
  for (const double bound : {1.0, 2.0, 4.0, 5.0, 5.0}) {
    mr::detail::retry_state same = state;
    CHECK(*state.next_pause_ns(rule, 0, 0.5, 0) == static_cast<std::int64_t>(0.5 * bound * 1e9));
    CHECK(*same.next_pause_ns(rule, 0, 0, 0) == 0);
  }
  CHECK(*state.next_pause_ns(rule, 0, 0.5, 60 * second_ns) == 60 * second_ns);
}

TEST_CASE("attempts end by their number, and by the time since the last progress") {
  const mr::remote_retries rule{.attempts = 3, .limit = std::chrono::seconds(10), .first_pause = {}};
  mr::detail::retry_state state(0);
  CHECK(state.next_pause_ns(rule, 0, 0, 0));
  CHECK(state.next_pause_ns(rule, 0, 0, 0));
  state.record_progress(10, 1'000'000, 5 * second_ns);        // too few bytes to count
  CHECK_FALSE(state.next_pause_ns(rule, 5 * second_ns, 0, 0));
  mr::detail::retry_state fresh(0);
  CHECK_FALSE(fresh.next_pause_ns(rule, 11 * second_ns, 0, 0));
  mr::detail::retry_state server_pause(0);
  CHECK_FALSE(server_pause.next_pause_ns(rule, 0, 0, 11 * second_ns));   // at once, instead of waiting in vain
}

TEST_CASE("progress restarts the count, and no request continues forever") {
  const mr::remote_retries rule{.attempts = 3, .limit = std::chrono::seconds(10), .first_pause = {}};
  mr::detail::retry_state state(0);
  int attempts = 0;
  for (std::int64_t now_ns = 0; attempts < 1000; now_ns += 9 * second_ns, ++attempts) {
    state.record_progress(300'000, 8'000'000, now_ns);
    if (!state.next_pause_ns(rule, now_ns, 0, 0)) break;
  }
  CHECK(attempts == mr::detail::retry_state::max_attempts - 1);
  mr::detail::retry_state small(0);
  for (int i = 0; i < 5; ++i) {
    small.record_progress(20, 100, 0);   // a large part of a small range
    CHECK(small.next_pause_ns(rule, 0, 0, 0));
  }
}

TEST_CASE("a few late requests are hedged, but none if many are late") {
  mr::detail::hedge_rule rule({.share = 0.05, .least_wait = std::chrono::milliseconds(500)});
  CHECK(rule.late_seconds() == 0.5);
  CHECK(rule.take(1, 10));
  CHECK_FALSE(rule.take(1, 10));   // one for the start; requests that succeed add more
  for (int i = 0; i < 256; ++i) rule.record_first_byte(i % 10 == 0 ? 1.0 : 0.1);
  CHECK(rule.late_seconds() == doctest::Approx(3.0));
  CHECK_FALSE(rule.take(5, 10));
  int hedges = 0;
  while (rule.take(1, 10)) ++hedges;
  CHECK(hedges == 4);
  mr::detail::hedge_rule none({.share = 0});
  CHECK_FALSE(none.take(1, 10));
}

// Reads from a web server that refuses old headers: the run waits for new ones.
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
  CHECK(notices[0].find("searches for new credentials for up to 7 s") != std::string::npos);
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
  CHECK(notices[0].find("searches for new credentials for up to 120 s") != std::string::npos);
}
