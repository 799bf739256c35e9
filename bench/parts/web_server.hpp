// nginx with the files of a folder, over http and TLS, and a relay in front of it that delays each answer.
//
//   bench::web_server server(folder, "folder/nginx");      // the folder to serve, and nginx's own folder
//   if (!server.answers("x.bin")) ...                       // nginx, openssl or curl is not installed
//   mr::remote({.ca_file = server.certificate})->open(server.plain + "x.bin");
//   bench::delaying_relay far(server.plain_port, 20'000'000);  // ns before each request is forwarded
//
// Their CPU time is not that of this process. They end with the objects. Construct them before you start threads.
#pragma once

#include <millrace/io/file/posix_files.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace bench {

/// Returns a socket on the loopback interface: on any free port, or connected to `port`; -1 for none.
inline int loopback_socket(int port) {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* const address = reinterpret_cast<const sockaddr*>(&at);
  const int on = 1;
  ::setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if ((port == 0 ? ::bind(s, address, sizeof at) : ::connect(s, address, sizeof at)) == 0) return s;
  ::close(s);
  return -1;
}

inline int port_of(int socket) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) == 0 ? ntohs(at.sin_port) : 0;
}

inline int free_port() {
  const int s = loopback_socket(0);
  const int port = port_of(s);
  ::close(s);
  return port;
}

/// Starts a program whose output is discarded.
inline pid_t start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  static_cast<void>(std::freopen("/dev/null", "w", stdout));
  static_cast<void>(std::freopen("/dev/null", "w", stderr));
  ::execvp(arguments[0], arguments.data());
  std::_Exit(127);
}

/// Runs a program to its end. Returns its CPU time; nothing if it failed.
inline std::optional<double> cpu_seconds_of(const std::vector<std::string>& words) {
  rusage used{};
  int status = 0;
  const pid_t child = start(words);
  if (child == -1 || ::wait4(child, &status, 0, &used) != child || status != 0) return std::nullopt;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// nginx that serves a folder.
class web_server {
 public:
  web_server(const std::string& served, const std::string& work)
      : certificate(work + "/cert.pem"), plain_port(free_port()), key_(work + "/key.pem") {
    if (!cpu_seconds_of({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key_, "-out",
                         certificate, "-days", "30", "-subj", "/CN=localhost", "-addext",
                         "subjectAltName=DNS:localhost"}))
      return;
    const int tls_port = free_port();
    std::string paths;
    for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      paths += std::string(kind) + "_temp_path " + work + "/" + kind + ";\n";
    std::ofstream(work + "/nginx.conf") << "worker_processes 1; pid " << work << "/pid; error_log " << work
                                        << "/errors; daemon off;\n"
                                        << (::geteuid() == 0 ? "user root;\n" : "")
                                        << "events { worker_connections 256; }\nhttp { access_log off; "
                                        << "sendfile on; keepalive_requests 1000000; " << paths << " root " << served
                                        << ";\nserver { listen 127.0.0.1:" << plain_port
                                        << "; }\nserver { listen 127.0.0.1:" << tls_port << " ssl; ssl_certificate "
                                        << certificate << "; ssl_certificate_key " << key_ << "; } }\n";
    child_ = start({"nginx", "-c", work + "/nginx.conf", "-p", work});
    plain = "http://127.0.0.1:" + std::to_string(plain_port) + "/";
    tls = "https://localhost:" + std::to_string(tls_port) + "/";
  }
  web_server(const web_server&) = delete;
  web_server& operator=(const web_server&) = delete;
  ~web_server() {
    if (child_ <= 0) return;
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
  }

  /// Waits until a file can be read, for up to ten seconds.
  bool answers(const std::string& file) const {
    for (int i = 0; child_ > 0 && i < 100; ++i) {
      if (cpu_seconds_of({"curl", "-sfI", plain + file})) return true;
      millrace::detail::posix_files::sleep_ns(100'000'000);
    }
    return false;
  }

  const std::string certificate;
  const int plain_port;
  std::string plain{}, tls{};

 private:
  const std::string key_;
  pid_t child_ = -1;
};

/// Forwards connections to a server, and delays the bytes from clients.
class delaying_relay {
 public:
  delaying_relay(int server_port, std::int64_t delay_ns) {
    const int listening = loopback_socket(0);
    port = port_of(listening);
    if (::listen(listening, 256) != 0) return;
    child_ = ::fork();
    if (child_ == 0) serve(listening, server_port, delay_ns);
    ::close(listening);
  }
  delaying_relay(const delaying_relay&) = delete;
  delaying_relay& operator=(const delaying_relay&) = delete;
  ~delaying_relay() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  int port = 0;

 private:
  [[noreturn]] static void serve(int listening, int server_port, std::int64_t delay_ns) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGPIPE, SIG_IGN);
    while (true) {
      const int client = ::accept(listening, nullptr, nullptr);
      if (client == -1) std::_Exit(1);
      const int server = loopback_socket(server_port);
      // Both directions own both sockets. No byte of an answer is copied into this process's memory.
      const std::shared_ptr<void> open(nullptr, [client, server](void*) {
        ::close(client);
        ::close(server);
      });
      std::thread(move_bytes, server, client, 0, open).detach();
      std::thread(move_bytes, client, server, delay_ns, open).detach();
    }
  }

  static void move_bytes(int from, int to, std::int64_t delay_ns, const std::shared_ptr<void>&) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    ::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    for (ssize_t got = 1; got > 0;) {
      got = ::splice(from, nullptr, ends[1], nullptr, 1 << 20, SPLICE_F_MOVE);
      if (got > 0 && delay_ns > 0) millrace::detail::posix_files::sleep_ns(delay_ns);
      for (ssize_t left = got; left > 0;) {
        const ssize_t moved = ::splice(ends[0], nullptr, to, nullptr, static_cast<std::size_t>(left), SPLICE_F_MOVE);
        if (moved <= 0) got = left = 0;
        left -= moved;
      }
    }
    ::shutdown(to, SHUT_WR);
    ::close(ends[0]);
    ::close(ends[1]);
  }

  pid_t child_ = -1;
};

}   // namespace bench
