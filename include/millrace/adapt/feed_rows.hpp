// A feeder: a program that computes rows of batches for trainers on other machines, and sends them by HTTP.
//
//   #include <millrace/adapt/feed_rows.hpp>                    // link with -lmicrohttpd
//   int main(int argc, char** argv) {                          // the same program runs on all machines
//     if (argc > 1) mr::feed_rows(flow(), {.listen = "0.0.0.0:8717", .token = secret, .session = options()});
//     else train(flow(), options());
//   }
//
// Opt-in: needs libmicrohttpd (libmicrohttpd-dev). The trainer uses adapt/feeders.hpp.
// A feeder has no state, no rank and no model. You may start any number of feeders, and stop them at any time. The
// trainer computes each row that no feeder sends. Order, digest and resume points do not depend on feeders. The feeder
// reads the same shards as the trainer. Program, flow, data set, seed, number of ranks and columns must be the same on
// both machines. If one of these differs, the feeder responds with status 409 and the text that describes its own run
// (hello_text()).
// Requests: GET /v1/RUN/hello and /v1/RUN/rows/... (adapt/feeders/row_protocol.hpp), /metrics for Prometheus, and
// /healthz, which needs no token. The option max_requests limits the number of requests in progress. Above the limit,
// the feeder refuses requests with status 429. A client is disconnected if it does not receive its rows within
// `patience` after they are computed. After SIGTERM or SIGINT, the feeder completes the requests in progress and
// refuses others with status 503. After that, feed_rows() returns. Call feed_rows() on the main thread, before other
// threads start. An earlier thread, such as a thread of mr::remote(), could receive the signal, which would end the
// process.
// Errors: setup_error if rows cannot be computed separately (streams without an index, pack, bucket, mix_rows), or if
// shards are missing. setup_error if `listen` is not a loopback address and no token is set. io_error if the address is
// in use. If a sample has an error, the feeder sends no row. The trainer computes the row, and reports the error.
// Threads: the workers call the callables of the flow concurrently, as in a session. Callables with `.blocking` run on
// the same workers and block them. If the flow has such callables, set session.threads to a larger number.
// Memory: 4 MiB for each request in progress.
#pragma once

#include <millrace/base/version.hpp>

#if !__has_include(<microhttpd.h>)
#error "millrace: libmicrohttpd is not installed: apt-get install libmicrohttpd-dev"
#endif
#include <millrace/adapt/feeders/feeder_server.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/run/session.hpp>

#include <signal.h>
#include <time.h>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Receives SIGTERM and SIGINT, which are blocked in this thread and in the threads that it starts. All other threads
/// must also block these signals, because a signal ends the process if one thread does not block it.
class stop_signals {
 public:
  stop_signals() noexcept {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGTERM);
    ::sigaddset(&signals_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~stop_signals() {
    while (wait_at_most(0)) {}   // a pending signal would end the process when signals are unblocked
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;

  /// Waits for a signal for at most `milliseconds`. Returns whether a signal has arrived.
  bool wait_at_most(int milliseconds) const noexcept {
    const timespec time{.tv_sec = milliseconds / 1'000, .tv_nsec = milliseconds % 1'000 * 1'000'000L};
    return ::sigtimedwait(&signals_, nullptr, &time) > 0;
  }

 private:
  sigset_t signals_{}, before_{};
};

/// Returns the session options with which a feeder computes rows: all epochs, and the trainer's number of ranks.
inline session_options described_feeder_run(session_options o) {
  o.world = world{.size = o.world ? o.world->size : 1};
  o.first_epoch = 0;
  o.epochs = o.epoch_batches == endless ? 1 : endless;
  o.rows = nullptr;
  o.executor = nullptr;
  return checked(std::move(o));
}

/// Serves rows until SIGTERM or SIGINT.
inline void serve_rows(row_maker& rows, const feed_rows_options& options, std::size_t workers, notice_outlet& notices) {
  const stop_signals stop;   // first, so that the server's threads inherit the blocked signals
  feeder_server server(rows, options, workers);
  notices.deliver({.kind = notice_kind::start,
                   .text = "the feeder listens at " + server.address() + ", with " + std::to_string(workers) +
                           " workers; " + rows.run().columns});
  while (!stop.wait_at_most(1'000)) server.close_slow();
  notices.deliver({.kind = notice_kind::start,
                   .text = "the feeder ends; it completes " + std::to_string(server.requests()) + " requests"});
  server.drain();
}

}   // namespace detail

/// Computes and sends rows of `flow`, until the process receives SIGTERM or SIGINT.
template <detail::flow_like Flow>
  requires detail::is_delivered<Flow>
void feed_rows(Flow flow, const feed_rows_options& options = {}) {
  if constexpr (detail::can_feed_rows<Flow>()) {
    const session_options run = detail::described_feeder_run(options.session);
    detail::notice_outlet notices(run.notice);
    const std::size_t workers = std::max(1U, run.threads.value_or(usable_cores()));
    detail::flow_row_maker<Flow> rows(std::move(flow), run, workers, notices);
    detail::serve_rows(rows, options, workers, notices);
  } else {
    detail::throw_feeder_flow_error("a flow with other stages");
  }
}

}}   // namespace millrace
