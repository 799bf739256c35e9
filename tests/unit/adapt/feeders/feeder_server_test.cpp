// The server of a feeder: it refuses other runs and tokens, and hostile or slow clients do not harm others.
#include "../../../eventually.hpp"
#include "../../../temporary_folder.hpp"
#include "feeder_rows.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>

#include <condition_variable>
#include <csignal>
#include <fstream>

namespace mr = millrace;
using feeder_rows::maker_of;
using feeder_rows::numbered_flow;

namespace {

/// A client that sends a text, and reads up to the end of the connection.
class client {
 public:
  explicit client(const std::string& address, int receive_bytes = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_bytes > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  ~client() { ::close(socket_); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;   // the server has closed the connection
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void end() const { ::shutdown(socket_, SHUT_WR); }
  /// Returns at most `most` bytes; an empty text at the end of the connection.
  std::string read(std::size_t most) const {
    std::string text(most, '\0');
    const ssize_t got = ::recv(socket_, text.data(), most, 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  int socket_ = -1;
};

struct http_reply {
  int status = 0;   // 0: none
  std::string head{}, body{};
};

std::string http_text(const std::string& path, const std::string& more = {}) {
  return "GET " + path + " HTTP/1.1\r\nHost: feeder\r\nConnection: close\r\n" + more + "\r\n";
}

http_reply ask(const std::string& address, const std::string& text) {
  const client c(address);
  c.send(text);
  std::string all;
  for (std::string piece = c.read(65'536); !piece.empty(); piece = c.read(65'536)) all += piece;
  http_reply r;
  const std::size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos || !all.starts_with("HTTP/1.1 ")) return r;
  r.status = std::stoi(all.substr(9, 3));
  r.head = all.substr(0, end + 2);
  r.body = all.substr(end + 4);
  return r;
}
http_reply get(const std::string& address, const std::string& path, const std::string& token = {}) {
  return ask(address, http_text(path, token.empty() ? "" : "Authorization: Bearer " + token + "\r\n"));
}

/// The value of a metric.
std::uint64_t metric(const std::string& address, const std::string& name, const std::string& token = {}) {
  const std::string text = get(address, "/metrics", token).body;
  const std::size_t at = text.find("\nmillrace_feeder_" + name + " ");
  REQUIRE(at != std::string::npos);
  return std::stoull(text.substr(text.find(' ', at) + 1));
}

/// A flow with rows of 64 KiB whose callables wait while `closed` is set.
struct gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
  std::atomic<int> waiting{0};

  void pass() {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.wait(lock, [&] { return !closed; });
    --waiting;
  }
  void set(bool is_closed) {
    const std::lock_guard lock(mutex);
    closed = is_closed;
    changed.notify_all();
  }
};

struct wide_row {
  std::array<std::uint8_t, 65'536> bytes;
};

auto wide_flow(gate& door) {
  return mr::from(numbers(1'000), {.seed = 1}) | mr::map([&door](int number) {
           door.pass();
           wide_row row;
           row.bytes.fill(static_cast<std::uint8_t>(number));
           return row;
         }) |
         mr::batch<&wide_row::bytes>({.size = 10});
}

}  // namespace

TEST_CASE("addresses beyond the loopback interface need a token, and options are checked") {
  gate door;
  const auto rows = maker_of(wide_flow(door), {});
  const auto start = [&](const mr::feed_rows_options& o) { mr::detail::feeder_server server(*rows, o, 1); };
  CHECK_THROWS_WITH_AS(start({.listen = "0.0.0.0:0"}), doctest::Contains("needs a token"), mr::setup_error);
  CHECK_THROWS_WITH_AS(start({.listen = "[::]:0"}), doctest::Contains("needs a token"), mr::setup_error);
  start({.listen = "0.0.0.0:0", .token = "secret"});
  start({.listen = "127.0.0.1:0"});
  for (const char* address : {"", "8717", ":8717", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1"})
    CHECK_THROWS_WITH_AS(start({.listen = address}), doctest::Contains("expected an address and a port"),
                         mr::setup_error);
  CHECK_THROWS_WITH_AS(start({.listen = "127.0.0.1:0", .token = "secret\n"}), doctest::Contains("line end"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(start({.listen = "127.0.0.1:0", .certificate = "c.pem"}), doctest::Contains("expected both"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(start({.listen = "127.0.0.1:0", .certificate = "/nothing/c.pem", .key = "/nothing/k.pem"}),
                       doctest::Contains("/nothing/c.pem"), mr::io_error);
  for (const auto patience : {std::chrono::seconds(0), std::chrono::seconds::max()})
    CHECK_THROWS_WITH_AS(start({.patience = patience}), doctest::Contains("patience is out of range"), mr::setup_error);
  const temporary_folder folder;
  for (const char* name : {"c.pem", "k.pem"}) std::ofstream(folder / name) << "no certificate";
  CHECK_THROWS_WITH_AS(start({.listen = "127.0.0.1:0", .certificate = folder / "c.pem", .key = folder / "k.pem"}),
                       doctest::Contains("cannot start with the certificate"), mr::setup_error);
  const mr::detail::feeder_server local(*rows, {.listen = "localhost:0"}, 1);   // the IPv4 address, as for trainers
  CHECK(local.address().starts_with("localhost:"));
  CHECK(get(local.address(), "/healthz").body == "ok\n");
  if (std::ifstream("/proc/net/if_inet6").get() > 0)   // IPv6 is available
    CHECK(mr::detail::feeder_server(*rows, {.listen = "[::1]:0"}, 1).address().starts_with("[::1]:"));
  mr::detail::feeder_server first(*rows, {.listen = "127.0.0.1:0"}, 1);
  CHECK_THROWS_WITH_AS(start({.listen = first.address()}), doctest::Contains("cannot listen at"), mr::io_error);
}

TEST_CASE("a server sends rows, its identity and metrics, and refuses other runs, tokens and paths") {
  const auto rows = maker_of(numbered_flow(100), {.on_damage = {.policy = mr::damage::mask, .at_most_share = 1}}, 3);
  mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0", .token = "se+cret"}, 3);
  const std::string& address = server.address();
  const std::string hello = mr::detail::hello_text(rows->run());
  const std::string run = mr::detail::run_id(hello);
  const auto ranges = [&](const mr::row_range& range) {
    return get(address, mr::detail::rows_path(run, range), "se+cret");
  };

  CHECK(get(address, "/healthz").body == "ok\n");
  CHECK(get(address, "/v1/" + run + "/hello", "se+cret").body == hello);
  for (const std::string& wrong : {std::string(), std::string("se+cre"), std::string("se+cret0"), std::string("x")}) {
    const http_reply r = get(address, "/v1/" + run + "/hello", wrong);
    CHECK(r.status == 401);
    CHECK(r.body.find(hello) == std::string::npos);
    CHECK(get(address, "/metrics", wrong).status == 401);
  }
  for (const char* rest : {"/hello", "/rows/0/0-4-1"}) {
    const http_reply r = get(address, std::string("/v1/0badf00d0badf00d") + rest, "se+cret");
    CHECK(r.status == 409);
    CHECK(r.body == hello);
  }
  for (const char* path : {"/", "/v1", "/v2/x", "/../../etc/passwd", "/etc/passwd"})
    CHECK(get(address, path, "se+cret").status == 404);
  for (const char* rest : {"/rows/0/0-65-1", "/rows/0/0-0-1", "/rows/0/x", "/rows/0/0-4-0", "/rows/0/428-4-1",
                           "/rows/0/0-4-7", "/rows/%30/0-4-1"})
    CHECK(get(address, "/v1/" + run + rest, "se+cret").status == 400);
  CHECK(ask(address, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello").status == 405);
  CHECK(ask(address, http_text("/healthz", "Content-Length: 100000000000\r\n")).status == 413);

  std::size_t missing = 0;
  for (const mr::row_range& range : {mr::row_range{.first = 0, .count = 64}, mr::row_range{.first = 366, .count = 64},
                                     mr::row_range{.epoch = 7, .first = 3, .count = 20, .step = 10}}) {
    const http_reply r = ranges(range);
    CHECK(r.status == 200);
    CHECK(r.head.find("Millrace-Workers: 3\r\n") != std::string::npos);
    std::vector<std::byte> expected;
    missing += rows->compute(rows->samples_of(range), 0, expected);
    CHECK(std::string_view(reinterpret_cast<const char*>(expected.data()), expected.size()) == r.body);
  }
  CHECK(missing > 0);
  CHECK(metric(address, "failed_rows_total", "se+cret") == missing);
  CHECK(metric(address, "rows_total", "se+cret") == 148 - missing);
  CHECK(metric(address, "workers", "se+cret") == 3);
  CHECK(metric(address, "refused_requests_total", "se+cret") > 20);
}

TEST_CASE("a busy server refuses requests, and completes the others after the end of a run") {
  gate door;
  const auto rows = maker_of(wide_flow(door), {}, 2);
  mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0", .max_requests = 3}, 2);
  const std::string run = mr::detail::run_id(mr::detail::hello_text(rows->run()));
  const auto rows_at = [&](std::uint64_t first) {
    return get(server.address(), mr::detail::rows_path(run, {.first = first, .count = 4}));
  };
  door.set(true);
  std::vector<http_reply> replies(3);
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < 3; ++i) clients.emplace_back([&, i] { replies[i] = rows_at(10 * i); });
  REQUIRE(eventually([&] { return server.requests() == 3 && door.waiting == 2; }));
  const http_reply refused = rows_at(500);
  CHECK(refused.status == 429);
  CHECK(refused.head.find("Millrace-Workers: 2\r\n") != std::string::npos);
  CHECK(metric(server.address(), "requests") == 3);
  CHECK(metric(server.address(), "busy_requests_total") == 1);

  std::thread drain([&] { server.drain(); });
  CHECK(eventually([&] { return get(server.address(), "/healthz").status == 503; }));
  CHECK(rows_at(500).status == 503);
  CHECK(server.requests() == 3);
  door.set(false);
  drain.join();
  for (std::thread& c : clients) c.join();
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(replies[i].status == 200);
    CHECK(replies[i].body.size() == 4 * (8 + 65'536));
    CHECK(static_cast<unsigned char>(replies[i].body.back()) == 10 * i + 3);
  }
}

TEST_CASE("a rank has a share of the requests, although another rank occupies all") {
  gate door;
  const auto rows = maker_of(wide_flow(door), {.world = mr::world{.size = 2}}, 3);
  mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0", .max_requests = 4}, 3);
  const std::string run = mr::detail::run_id(mr::detail::hello_text(rows->run()));
  const auto rows_of = [&](std::size_t rank, std::uint64_t first) {
    return get(server.address(), mr::detail::rows_path(run, {.first = 2 * first + rank, .count = 2, .step = 2}));
  };
  door.set(true);
  std::vector<std::thread> clients;
  std::atomic<int> answered{0};
  const auto start = [&](std::size_t rank, std::uint64_t first, std::size_t running) {
    clients.emplace_back([&, rank, first] { answered += rows_of(rank, first).status == 200; });
    REQUIRE(eventually([&] { return server.requests() == running; }));
  };
  for (std::size_t i = 0; i < 4; ++i) start(0, 10 * i, i + 1);
  const http_reply full = rows_of(0, 100);
  CHECK(full.status == 429);
  CHECK(full.head.find("Millrace-Workers: 3\r\n") != std::string::npos);
  start(1, 0, 5);
  start(1, 10, 6);   // two of four requests
  const http_reply share = rows_of(1, 100);
  CHECK(share.status == 429);
  CHECK(share.head.find("Millrace-Workers: 2\r\n") != std::string::npos);
  CHECK(rows_of(0, 100).status == 429);
  CHECK(metric(server.address(), "ranks") == 2);
  door.set(false);
  for (std::thread& c : clients) c.join();
  CHECK(answered == 6);
  CHECK(rows_of(1, 100).head.find("Millrace-Workers: 3\r\n") != std::string::npos);
}

TEST_CASE("slow and silent clients do not block others, and lose their connections") {
  gate door;
  const auto rows = maker_of(wide_flow(door), {}, 2);
  mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0", .max_requests = 3,
                                           .patience = std::chrono::seconds(1)}, 2);
  const std::string run = mr::detail::run_id(mr::detail::hello_text(rows->run()));
  const std::string path = mr::detail::rows_path(run, {.count = 64});
  std::vector<std::unique_ptr<client>> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<client>(server.address()));
  for (std::size_t i = 0; i < 50; ++i) silent[i]->send("GET /v1/");
  const client idle(server.address(), 4'096), slow(server.address(), 4'096);
  door.set(true);   // otherwise one request could end before the other starts
  idle.send(http_text(path));
  slow.send(http_text(path));
  REQUIRE(eventually([&] { return server.requests() == 2; }));
  door.set(false);
  std::atomic<bool> closed{false};
  std::size_t received = 0;
  std::thread trickle([&] {
    for (std::string piece = slow.read(64); !piece.empty(); piece = slow.read(closed ? 65'536 : 64)) {
      received += piece.size();
      if (!closed) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  CHECK(get(server.address(), path).body.size() == 64 * (8 + 65'536));
  CHECK(eventually([&] {
    server.close_slow();
    return server.requests() == 0;
  }));
  closed = true;
  trickle.join();   // it reads the bytes that the system had already accepted
  CHECK(received < 64 * (8 + 65'536));
  CHECK(metric(server.address(), "closed_connections_total") > 0);
  CHECK(eventually([&] { return silent[0]->read(10).empty(); }));
  CHECK(get(server.address(), path).status == 200);
}

TEST_CASE("clients that send their requests byte by byte lose their connections") {
  gate door;
  const auto rows = maker_of(wide_flow(door), {}, 2);
  mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0", .patience = std::chrono::seconds(1)}, 2);
  const client slow(server.address());
  const auto start = std::chrono::steady_clock::now();
  std::atomic<bool> is_open{true};
  std::thread reader([&] { is_open = !slow.read(1).empty(); });
  while (is_open && std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
    slow.send("G");
    server.close_slow();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(!is_open);
  reader.join();
  CHECK(metric(server.address(), "closed_connections_total") == 1);
}

TEST_CASE("a server computes no more rows for a client that has left") {
  gate door;
  const auto rows = maker_of(wide_flow(door), {}, 2);
  mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0"}, 2);
  const std::string run = mr::detail::run_id(mr::detail::hello_text(rows->run()));
  door.set(true);
  {
    const client leaving(server.address());
    leaving.send(http_text(mr::detail::rows_path(run, {.count = 64})));
    REQUIRE(eventually([&] { return door.waiting == 2; }));   // both workers compute a part of 16 rows
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));   // until the system has received the end
  door.set(false);
  CHECK(eventually([&] { return server.requests() == 0; }));
  CHECK(metric(server.address(), "rows_total") == 32);
  CHECK(metric(server.address(), "sent_bytes_total") == 0);
}

TEST_CASE("garbage and clients that leave do not harm a server") {
  gate door;
  const auto rows = maker_of(wide_flow(door), {}, 2);
  mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0", .max_requests = 2,
                                           .patience = std::chrono::seconds(1)}, 2);
  const std::string run = mr::detail::run_id(mr::detail::hello_text(rows->run()));
  const std::string request = http_text(mr::detail::rows_path(run, {.count = 64}));
  mr::rng random({.seed = 1});
  for (int trial = 0; trial < 200; ++trial) {
    std::string text = request;
    for (std::uint64_t i = 0; i <= random.below(4); ++i)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    if (random.below(8) == 0) text.insert(random.below(text.size()), std::string(40'000, 'x'));
    if (random.below(4) == 0) text.resize(random.below(text.size()));
    const client c(server.address());
    c.send(text);
    if (random.below(2) == 0) c.end();
    if (random.below(4) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(eventually([&] { return server.requests() == 0; }));
  CHECK(ask(server.address(), request).body.size() == 64 * (8 + 65'536));
}

TEST_CASE("feed_rows() returns after SIGTERM") {
  std::mutex mutex;
  std::vector<std::string> notices;
  const auto find = [&](std::string_view start) {
    const std::lock_guard lock(mutex);
    for (const std::string& text : notices)
      if (text.starts_with(start)) return text;
    return std::string();
  };
  mr::feed_rows_options options{.listen = "127.0.0.1:0", .session = {.threads = 2}};
  options.session.notice = [&](const mr::notice& n) {
    const std::lock_guard lock(mutex);
    notices.push_back(n.text);
  };
  std::thread feeder([&] { mr::feed_rows(numbered_flow(100), options); });
  const std::string start = "the feeder listens at ";
  REQUIRE(eventually([&] { return !find(start).empty(); }));
  const std::string text = find(start), address = text.substr(start.size(), text.find(',') - start.size());
  CHECK(text.find("numbered_row::number [40] i32") != std::string::npos);
  CHECK(get(address, "/healthz").status == 200);
  // Threads of oneTBB, which earlier sessions started, do not block a signal to the process.
  ::pthread_kill(feeder.native_handle(), SIGTERM);
  feeder.join();
  CHECK(!find("the feeder ends").empty());
}
