// remote: bytes over http and TLS from a server on this machine, for a second of CPU, beside curl
//
// nginx serves one file from the page cache over the loopback interface. `curl` reads it by one request and throws it
// away. mr::remote() reads it ahead in parts of 8 MiB by several connections; the bytes are copied into a buffer of the
// reader's. Both are judged on the CPU time of their own process, in turn: the server's is not counted.
#include "harness.hpp"

#include <millrace/adapt/remote.hpp>
#include <millrace/base/random.hpp>

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace mr = millrace;

namespace {

int free_port() {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool bound = s != -1 && ::bind(s, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::getsockname(s, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  ::close(s);
  return bound ? ntohs(at.sin_port) : 0;
}

/// Starts a program whose words go nowhere.
pid_t start(const std::vector<std::string>& words) {
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

/// Runs a program to its end. Returns the CPU time that it took; nothing if it failed.
std::optional<double> cpu_seconds_of(const std::vector<std::string>& words) {
  rusage used{};
  int status = 0;
  const pid_t child = start(words);
  if (child == -1 || ::wait4(child, &status, 0, &used) != child || status != 0) return std::nullopt;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// nginx with a folder, from when it answers until its end.
class web_server {
 public:
  explicit web_server(const std::string& folder) : certificate(folder + "/cert.pem"), key_(folder + "/key.pem") {
    if (!cpu_seconds_of({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key_, "-out",
                         certificate, "-days", "30", "-subj", "/CN=localhost", "-addext",
                         "subjectAltName=DNS:localhost"}))
      return;
    const int plain_port = free_port(), tls_port = free_port();
    std::string paths;
    for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      paths += std::string(kind) + "_temp_path " + folder + "/" + kind + ";\n";
    std::ofstream(folder + "/nginx.conf")
        << "worker_processes 1; pid " << folder << "/pid; error_log " << folder << "/errors; daemon off;\n"
        << (::geteuid() == 0 ? "user root;\n" : "") << "events { worker_connections 256; }\nhttp { access_log off; "
        << "sendfile on; " << paths << " root " << folder << ";\nserver { listen 127.0.0.1:" << plain_port
        << "; }\nserver { listen 127.0.0.1:" << tls_port << " ssl; ssl_certificate " << certificate
        << "; ssl_certificate_key " << key_ << "; } }\n";
    child_ = start({"nginx", "-c", folder + "/nginx.conf", "-p", folder});
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
      mr::detail::posix_files::sleep_ns(100'000'000);
    }
    return false;
  }

  const std::string certificate;
  std::string plain{}, tls{};

 private:
  const std::string key_;
  pid_t child_ = -1;
};

/// Reads a whole object. Returns the CPU time of it; throws if it has another size.
double read_seconds(const std::string& url, const web_server& server, std::uint64_t bytes) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  const bench::clocks before = bench::now();
  {
    const auto place = mr::remote({.ca_file = server.certificate});
    const auto file = place->open(url);
    const mr::byte_range all{};
    file->will_read({&all, 1});
    std::uint64_t at = 0;
    for (std::size_t got = 1; got > 0; at += got) got = file->read_at(at, buffer);
    if (at != bytes) throw mr::setup_error("the object has another size", "Look at the server");
  }
  return (bench::now() - before).cpu_s;
}

void compare(bench::harness& run, const std::string& name, const std::string& url, const web_server& server,
             std::uint64_t bytes) {
  std::vector<double> curl, ours, ratio;
  const double gigabytes = 1e-9 * static_cast<double>(bytes);
  for (int round = 0; round < (run.quick() ? 3 : 9); ++round) {
    const auto other = cpu_seconds_of({"curl", "-sf", "--http1.1", "--cacert", server.certificate, "-o", "/dev/null",
                                       url});
    if (!other) throw mr::setup_error("curl cannot read " + url, "Look at it by hand");
    curl.push_back(gigabytes / *other);
    ours.push_back(gigabytes / read_seconds(url, server, bytes));
    ratio.push_back(ours.back() / curl.back());
  }
  std::printf("%s: GB a second of CPU: curl %s, remote %s; ratio %s\n", name.c_str(), bench::spread(curl).c_str(),
              bench::spread(ours).c_str(), bench::spread(ratio).c_str());
  run.result("remote_" + name + "_curl", bench::median(curl), "GB/CPU-s");
  run.result("remote_" + name, bench::median(ours), "GB/CPU-s");
  run.result("remote_" + name + "_of_curl", bench::median(ratio), "", bench::at_least(0.8));
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "remote");
    const std::string folder = std::filesystem::absolute(bench::data_folder() + "/remote").string();
    std::filesystem::create_directories(folder);
    const std::uint64_t bytes = std::uint64_t{run.quick() ? 128U : 1024U} << 20;
    {
      std::ofstream file(folder + "/shard.bin", std::ios::binary);
      mr::rng random({.seed = 1});
      std::vector<std::uint64_t> some(1 << 17);
      for (auto& word : some) word = random.bits();
      for (std::uint64_t at = 0; at < bytes; at += some.size() * sizeof some[0])
        file.write(reinterpret_cast<const char*>(some.data()), std::ssize(some) * 8);
    }
    const web_server server(folder);
    if (!server.answers("shard.bin")) return run.nothing_measured("nginx, openssl or curl is not there");
    compare(run, "http", server.plain + "shard.bin", server, bytes);
    compare(run, "tls", server.tls + "shard.bin", server, bytes);
    std::filesystem::remove(folder + "/shard.bin");
    return run.finish();
  });
}
