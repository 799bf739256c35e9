// The row storage of feeders: a network thread divides requests among feeders, and receives their rows.
//
//   auto rows = std::make_shared<mr::detail::feeder_client>(mr::feeder_options{.hosts = {"node7:8717"}});
//   options.rows = rows;                          // the session opens it
//
// The network thread divides each request of the session into parts, and sends each part to the feeder with the most
// free space in its window. If a part fails, it is sent to another feeder, at most three times. After that, or without
// another feeder, the workers of the session compute its rows. Errors: setup_error for invalid options, and if sessions
// with different rows share a storage. Threads: as for row_storage.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_attempt.hpp>
#include <millrace/base/random.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The function that returns the addresses of a host, and the period of its calls.
struct feeder_lookup {
  std::function<std::vector<std::string>(const feeder_host&)> resolve = resolve_host;
  std::chrono::duration<double> period{10};
};

/// Receives rows from feeders.
class feeder_client final : public feeder_storage {
 public:
  explicit feeder_client(feeder_options o, feeder_lookup lookup = {});
  ~feeder_client() override;

  void open(const row_run& run) override;
  std::size_t free_rows() override;
  void read_rows(const row_range& range, row_slots slots) override;
  std::vector<feeder_statistics> statistics() const override;

 private:
  using part_pointer = std::shared_ptr<feeder_part>;
  using attempt_pointer = std::unique_ptr<feeder_attempt>;
  /// The addresses of the hosts. The thread that resolves them may outlive the client: it cannot be interrupted.
  struct address_book {
    std::vector<feeder_address> all{};
    std::vector<std::pair<std::string, std::string>> problems{};   // names that were not resolved, and the reasons
    std::atomic<bool> is_complete{false};
  };

  static constexpr std::size_t max_requests = 512;
  static constexpr int max_attempts = 4;
  static constexpr std::int64_t tick_ns = 10'000'000, refused_pause_ns = 10'000'000'000, none_ready_ns = 1'000'000'000;

  void run() noexcept;
  bool run_once();
  void resolve_names(std::int64_t now_ns);
  void update_feeders(address_book& book);
  void greet(std::int64_t now_ns);
  /// Sends waiting parts to feeders. Without feeders, returns the rows of the parts to the session.
  void assign(std::int64_t now_ns);
  void start(feeder_state& f, part_pointer of, bool is_hedge = false);
  attempt_pointer end(CURL* handle);
  void conclude(feeder_attempt& a, CURLcode code);
  void accept(const feeder_attempt& a);
  void hedge(const part_pointer& p, std::int64_t now_ns);
  void fail(feeder_state& f, const std::string& problem, std::int64_t least_pause_ns = 0) {
    f.record_failure(problem, random_.uniform(), least_pause_ns);
  }
  /// Reports a refusal once for each host and status.
  void refuse(feeder_state& f, int status, const std::string& problem);
  void retry(const part_pointer& p);
  /// Ends requests that receive no bytes or that are not needed. Also sends late requests to a second feeder. Publishes
  /// the statistics.
  void check(std::int64_t now_ns);
  void report_none_ready(std::int64_t now_ns);
  void post_once(const std::string& what, const std::string& text);

  const feeder_options options_;
  const std::vector<feeder_host> hosts_;
  const feeder_lookup lookup_;
  notice_outlet notices_;
  curl_transfers transfers_;
  std::string hello_;   // the text of the run; constant after open(), like the next two lines
  feeder_attempt::settings settings_{};
  std::size_t request_limit_ = 0;
  std::atomic<std::size_t> outstanding_{0}, capacity_{0};   // requested rows; the windows of all ready feeders

  mutable std::mutex mutex_;   // guards the next three members
  std::vector<part_pointer> submitted_;
  std::vector<feeder_statistics> published_;
  bool ending_ = false;

  // Only the network thread uses these.
  std::vector<std::unique_ptr<feeder_state>> feeders_;
  std::deque<part_pointer> waiting_;
  row_buffers buffers_;   // before running_, whose decoders use them
  std::unordered_map<CURL*, attempt_pointer> running_;
  hedge_rule hedges_;
  rng random_{{.seed = steady_now_ns()}};
  std::set<std::string> reported_;
  std::int64_t next_check_ns_ = 0, next_lookup_ns_ = 0, last_ready_ns_ = 0;
  std::shared_ptr<address_book> book_;   // while names are resolved
  bool was_resolved_ = false;

  std::thread resolver_, thread_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/feeder_client.inl>
#endif
