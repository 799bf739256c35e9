// feeders: a trainer and a feeder: the cost of receiving, the rate, and the prediction of a report
//
// The feeder is this program in another process, connected by http over the loopback interface. Runs with and without
// the feeder alternate. Only CPU times of the trainer's process count; rates are wall time.
//   sleep: a callable sleeps 10 ms and fills a row of 150 kB, 2 workers and 16 of the feeder. Rate as a share of the
//     sum of both, and CPU time of the threads that receive rows, per GB; compared with measure_receiving(), which
//     copies and checks rows, with recv() alone, and with recv() and a checksum of the bytes in the buffer.
//   jpeg: photographs of M, one worker and one of the feeder, each on its own core. CPU time of the trainer per row,
//     compared with feeder_gain_of(), which report_of() prints.
#include "harness.hpp"
#include "photo_example.hpp"
#include "photo_sets.hpp"
#include "threads.hpp"

#include <millrace/adapt/feed_rows.hpp>
#include <millrace/adapt/feeders.hpp>
#include <millrace/base/clock.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/millrace.hpp>
#include <millrace/report/verdict/limits.hpp>

#include <arpa/inet.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <span>
#include <thread>

namespace mr = millrace;

namespace {

constexpr std::size_t row_bytes = 224 * 224 * 3;

struct plain_row {
  mr::tensor<std::uint8_t, 1> bytes;
};

auto sleeping_flow() {
  std::vector<int> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const auto prepare = [](int number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    plain_row row{mr::tensor<std::uint8_t, 1>({row_bytes})};
    std::memset(row.bytes.data(), number, row_bytes);
    return row;
  };
  return mr::from(std::move(all), {.seed = 1}) | mr::map(prepare) | mr::batch<&plain_row::bytes>({.size = 64});
}

auto photo_flow(const std::vector<std::string>& names) {
  return mr::shards(names, {.seed = 1}) | mr::shuffle({.window = 512}) | mr::map(bench::prepare_photo) |
         mr::batch<&bench::photo_example::pixels, &bench::photo_example::label>({.size = 64});
}

mr::session_options options_of(unsigned threads) {
  return {.epochs = mr::endless, .threads = threads, .notice = mr::quiet};
}

void stay_on_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

/// Returns a socket that is bound to a free port of the loopback interface. `at` receives its address.
int bound_socket(sockaddr_in& at) {
  const int bound = socket(AF_INET, SOCK_STREAM, 0);
  at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  bind(bound, reinterpret_cast<const sockaddr*>(&at), size);
  getsockname(bound, reinterpret_cast<sockaddr*>(&at), &size);
  return bound;
}

/// The process that computes rows.
class feeder_process {
 public:
  explicit feeder_process(const std::string& part) : host_("127.0.0.1:" + std::to_string(free_port())) {
    id_ = fork();
    if (id_ == 0) {
      setenv("MILLRACE_BENCH_FEED", (part + " " + host_).c_str(), 1);
      execl("/proc/self/exe", "bench_feeders", nullptr);
      _exit(127);
    }
  }
  ~feeder_process() {
    kill(id_, SIGTERM);
    waitpid(id_, nullptr, 0);
  }
  feeder_process(const feeder_process&) = delete;
  feeder_process& operator=(const feeder_process&) = delete;

  const std::string& host() const { return host_; }

 private:
  static int free_port() {
    sockaddr_in at{};
    close(bound_socket(at));
    return ntohs(at.sin_port);
  }

  std::string host_;
  pid_t id_ = -1;
};

/// One measured window of a run.
struct fed_window {
  double rows = 0, fed_rows = 0, seconds = 0, cpu_s = 0;
  double receiving_s = 0;   // CPU time of the threads that receive rows
  mr::flow_statistics statistics{};
};

double rows_of(const std::shared_ptr<mr::feeder_storage>& feeders) {
  double rows = 0;
  if (feeders)
    for (const auto& f : feeders->statistics()) rows += static_cast<double>(f.rows);
  return rows;
}

double receiving_seconds() {
  double ns = 0;
  for (const auto& [id, t] : bench::threads_now())
    if (t.name == "millrace-net" || t.name == "millrace-rows") ns += static_cast<double>(t.cpu_ns);
  return 1e-9 * ns;
}

/// Returns the CPU seconds to read a GB from a connection to another process into one buffer, and, if `is_checked`, to
/// compute the checksum of the bytes.
double read_alone(bool is_checked) {
  constexpr std::size_t all_bytes = std::size_t{256} << 20;
  int ends[2];
  sockaddr_in at{};
  const int listener = bound_socket(at);
  listen(listener, 1);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  connect(ends[0], reinterpret_cast<const sockaddr*>(&at), sizeof at);
  ends[1] = accept(listener, nullptr, nullptr);
  close(listener);
  std::vector<char> buffer(64 << 10), row(row_bytes);
  const pid_t sender = fork();
  if (sender == 0) {
    for (std::size_t sent = 0; sent < all_bytes;) {
      const ssize_t n = send(ends[1], row.data(), std::min(row.size(), all_bytes - sent), MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  const std::int64_t start = mr::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  std::uint32_t sum = 0;
  for (ssize_t n; (n = recv(ends[0], buffer.data(), buffer.size(), 0)) > 0;)
    if (is_checked) sum ^= mr::crc32c(std::as_bytes(std::span(buffer).first(static_cast<std::size_t>(n))));
  const std::int64_t ns = mr::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
  [[maybe_unused]] static volatile std::uint32_t used_sum;   // without a use, the compiler could omit the checksum
  used_sum = sum;
  close(ends[0]);
  waitpid(sender, nullptr, 0);
  return static_cast<double>(ns) / static_cast<double>(all_bytes);
}

/// Runs a flow. The window begins after a second, and when the first rows of a feeder have arrived.
template <class Flow>
fed_window measure(Flow flow, unsigned threads, const std::string& host, double seconds) {
  std::shared_ptr<mr::feeder_storage> feeders;
  auto options = options_of(threads);
  if (!host.empty()) {
    feeders = mr::feeders({.hosts = {host}, .notice = mr::quiet});
    options.rows = feeders;
  }
  mr::session run{std::move(flow), options};
  fed_window w;
  bench::clocks start = bench::now();
  double fed_before = 0, receiving_before = 0;
  mr::flow_statistics before;
  bool is_measuring = false;
  for (auto& b : run) {
    const bench::clocks spent = bench::now() - start;
    if (is_measuring) w.rows += static_cast<double>(b.size());
    if (is_measuring && spent.wall_s > seconds) {
      w.seconds = spent.wall_s;
      w.cpu_s = spent.cpu_s;
      w.fed_rows = rows_of(feeders) - fed_before;
      w.receiving_s = receiving_seconds() - receiving_before;
      w.statistics = run.statistics() - before;
      break;
    }
    if (!is_measuring && spent.wall_s > 1 && (!feeders || rows_of(feeders) > 500)) {
      is_measuring = true;
      fed_before = rows_of(feeders);
      receiving_before = receiving_seconds();
      before = run.statistics();
      start = bench::now();
    }
  }
  return w;
}

void measure_sleeping(bench::harness& run) {
  constexpr unsigned here = 2, there = 16;
  const double seconds = run.quick() ? 3 : 10;
  std::vector<double> shares, costs, predicted, alone_costs, checked_costs;
  const feeder_process feeder("sleep");
  for (int round = 0; round < (run.quick() ? 2 : 7); ++round) {
    const fed_window alone = measure(sleeping_flow(), here, {}, seconds / 2),
                     fed = measure(sleeping_flow(), here, feeder.host(), seconds);
    const double local = alone.rows / alone.seconds, sum = local + there * local / here;
    shares.push_back(fed.rows / fed.seconds / sum);
    predicted.push_back(mr::measure_receiving());
    alone_costs.push_back(read_alone(false));
    checked_costs.push_back(read_alone(true));
    costs.push_back(1e9 * fed.receiving_s / (fed.fed_rows * row_bytes));
    std::printf("  %.0f of %.0f rows/s; %.0f fed rows, %.3f CPU s to receive a GB, predicted %.3f, recv() alone %.3f, "
                "with a checksum %.3f\n",
                fed.rows / fed.seconds, sum, fed.fed_rows, costs.back(), predicted.back(), alone_costs.back(),
                checked_costs.back());
  }
  run.result("feeders_sleep_share_of_sum", bench::median(shares), "", bench::at_least(0.85));
  run.result("feeders_receiving", bench::median(costs), "CPU-s/GB", bench::at_most(0.4));
  run.result("feeders_receiving_predicted", bench::median(predicted), "CPU-s/GB");
  run.result("feeders_recv_alone", bench::median(alone_costs), "CPU-s/GB");
  run.result("feeders_recv_and_checksum", bench::median(checked_costs), "CPU-s/GB");
}

void measure_photos(bench::harness& run) {
  const auto set = bench::make_photo_set(bench::photo_sets[0]);
  const double seconds = run.quick() ? 4 : 15;
  std::vector<double> errors, relief;
  const feeder_process feeder("jpeg");
  stay_on_core(0);
  for (int round = 0; round < (run.quick() ? 3 : 9); ++round) {
    fed_window alone = measure(photo_flow(set.names), 1, {}, seconds);
    const fed_window fed = measure(photo_flow(set.names), 1, feeder.host(), seconds);
    alone.statistics.receive_ns_per_byte = mr::measure_receiving();
    const auto gain = mr::feeder_gain_of(alone.statistics);
    const mr::stage_statistics* const work = alone.statistics.find(mr::stage_kind::work);
    if (!gain || !work || work->cpu_ns == 0) throw mr::setup_error("the run has no statistics", "Use Linux");
    // feeder_gain_of() predicts elapsed times; on a loaded machine, they include waits for a core.
    const double prepare_ns = static_cast<double>(work->cpu_ns) / work->samples();
    const double receive_ns = gain->row_bytes * alone.statistics.receive_ns_per_byte;
    const double now_ns = 1e9 * alone.cpu_s / alone.rows, fed_ns = 1e9 * fed.cpu_s / fed.rows;
    const double share = fed.fed_rows / fed.rows, predicted_ns = now_ns - share * (prepare_ns - receive_ns);
    errors.push_back(std::abs(fed_ns / predicted_ns - 1));
    relief.push_back(now_ns / fed_ns);
    std::printf("  %s\n  share of the feeder %.2f: %.1f us CPU per row, predicted %.1f; without feeder %.1f\n",
                gain->text().c_str(), share, 1e-3 * fed_ns, 1e-3 * predicted_ns, 1e-3 * now_ns);
  }
  run.result("feeders_jpeg_cpu_relief", bench::median(relief), "");
  run.result("feeders_jpeg_prediction_error", bench::median(errors), "", bench::at_most(0.15));
}

int feed(const std::string& what) {
  const std::string part = what.substr(0, what.find(' ')), address = what.substr(part.size() + 1);
  if (part == "sleep") {
    mr::feed_rows(sleeping_flow(), {.listen = address, .session = options_of(16)});
  } else {
    stay_on_core(1);
    const auto set = bench::make_photo_set(bench::photo_sets[0]);
    mr::feed_rows(photo_flow(set.names), {.listen = address, .session = options_of(1)});
  }
  return 0;
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    if (const char* const what = std::getenv("MILLRACE_BENCH_FEED")) return feed(what);
    bench::harness run(argc, argv, "feeders");
    if (run.wants("sleep")) measure_sleeping(run);
    if (run.wants("jpeg")) measure_photos(run);
    return run.finish();
  });
}
