// A feeder: a program that computes rows for trainers on other machines, and sends them by HTTP.
//
//   #include <millrace/adapt/feed_rows.hpp>                    // link with -lmicrohttpd
//   int main(int argc, char** argv) {                          // the same program on all machines
//     if (argc > 1) mr::feed_rows(flow(), {.listen = "0.0.0.0:8717", .token = secret, .session = options()});
//     else train(flow(), options());
//   }
//
// Opt-in: needs libmicrohttpd (libmicrohttpd-dev). The trainer's side is adapt/feeders.hpp.
// A feeder has no state, no rank and no model. Start any number of feeders, and end them at any time. A row that a
// feeder does not send is computed by the trainer. Order, digest and resume points do not depend on feeders.
// The feeder reads the same shards as the trainer. Its rows are used only if program, flow, data set, seed, ranks and
// columns are the same. For another run, it answers 409 with its identity.
// Requests: GET /v1/RUN/hello and /v1/RUN/rows/... (adapt/feeders/row_protocol.hpp); /metrics for Prometheus; /healthz,
// which needs no token. At most max_requests requests are in work; others are refused with 429. A slow client occupies
// one request at most for `patience`.
// SIGTERM and SIGINT: the feeder completes the requests in work, refuses others with 503, and feed_rows() returns.
// Call feed_rows() on the main thread, before other threads start: a signal ends the process if another thread, such as
// one of mr::remote(), accepts it.
// Errors: setup_error for rows that cannot be computed alone (streams without an index, pack, bucket, mix_rows).
// setup_error for missing shards, and for an address beyond the loopback interface without a token. io_error if the
// address is in use. An error of a sample is sent to the trainer, which computes its row again.
// Threads: the workers call the callables of the flow concurrently, as in a session. A callable with `.blocking` also
// runs on the workers: set session.threads to a larger number.
// Memory: 4 MiB for each request in work.
#pragma once

#include <millrace/base/version.hpp>

#if !__has_include(<microhttpd.h>)
#error "millrace: libmicrohttpd is not installed: apt-get install libmicrohttpd-dev"
#endif
#include <millrace/adapt/feeders/feeder_server.hpp>
#include <millrace/adapt/feeders/stop_signals.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/run/session.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns the options of the run of a feeder: rank 0 of the trainer's ranks, in any epoch.
inline session_options run_of_feeder(session_options o) {
  o.world = world{.size = o.world ? o.world->size : 1};
  o.first_epoch = 0;
  o.epochs = o.epoch_batches == endless ? 1 : endless;
  o.rows = nullptr;
  o.executor = nullptr;
  return checked(std::move(o));
}

/// Serves rows until SIGTERM or SIGINT.
inline void serve_rows(row_maker& rows, const feed_rows_options& options, std::size_t workers, notice_outlet& notices) {
  const stop_signals stop;   // first, so that the threads of the server block the signals
  feeder_server server(rows, options, workers);
  notices.deliver({.kind = notice_kind::start, .text = "the feeder listens at " + server.address() + ", with " +
                                                       std::to_string(workers) + " workers; " + rows.run().columns});
  while (!stop.wait_at_most(1'000)) server.close_slow();
  notices.deliver({.kind = notice_kind::start, .text = "the feeder ends; it completes " +
                                                       std::to_string(server.requests()) + " requests"});
  server.drain();
}

}  // namespace detail

/// Computes and sends the rows of `flow` until the process receives SIGTERM or SIGINT.
template <detail::flow_like Flow>
  requires detail::is_delivered<Flow>
void feed_rows(Flow flow, const feed_rows_options& options = {}) {
  if constexpr (detail::makes_rows_alone<Flow>()) {
    const session_options run = detail::run_of_feeder(options.session);
    detail::notice_outlet notices(run.notice);
    const std::size_t workers = std::max(1U, run.threads.value_or(usable_cores()));
    detail::flow_rows<Flow> rows(std::move(flow), run, workers, notices);
    detail::serve_rows(rows, options, workers, notices);
  } else {
    detail::throw_not_alone("a flow of another kind");
  }
}

}}  // namespace millrace
