// Definitions for session_errors.hpp.
#pragma once

#include <millrace/run/session_errors.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE session_options checked(session_options o) {
  if (o.epochs == 0)
    throw setup_error("session_options::epochs is invalid: got 0, expected at least 1", "Omit epochs to run one epoch");
  if (o.first_epoch >= o.epochs)
    throw setup_error(
        "session_options::first_epoch is invalid: got " + std::to_string(o.first_epoch) + ", expected less than the " +
            std::to_string(o.epochs) + " epochs",
        "Raise session_options::epochs. It is the number of all epochs, including those before first_epoch");
  if (o.first_epoch > 0 && !o.resume.empty())
    throw setup_error("session_options::first_epoch and session_options::resume are both set: got two starts of a run, "
                      "expected one",
                      "Omit first_epoch to continue at the resume point");
  if (o.executor) {
    if (o.threads == 0U)
      throw setup_error("session_options::threads is invalid with an executor: got 0, which runs all work on your "
                        "thread, expected at least 1",
                        "Leave out session_options::threads or session_options::executor");
    const unsigned most = o.executor->concurrency();
    if (most == 0)
      throw setup_error("session_options::executor has no threads: concurrency() is 0, expected at least 1",
                        "Return the number of threads from concurrency()");
    o.threads = std::min(o.threads.value_or(most), most);
  }
  if (!o.world) o.world = world_by_default();
  return o;
}

MILLRACE_RARE void throw_finished(const session_options& o, std::uint64_t epoch) {
  const std::string loop = epoch == endless ? "another loop" : "a loop over epoch " + std::to_string(epoch);
  const std::string all = o.epochs == 1 ? "its one epoch" : "all its " + std::to_string(o.epochs) + " epochs";
  throw setup_error("the session is over: got " + loop + ", expected none after " + all,
                    "Raise session_options::epochs, or create a new session");
}

MILLRACE_RARE void throw_epoch_passed(std::uint64_t epoch, std::uint64_t next) {
  throw setup_error("the session has passed epoch " + std::to_string(epoch) +
                        ": got a loop over this "
                        "epoch, expected epoch " +
                        std::to_string(next) + " or a later one",
                    "Loop over the next epoch, or read this epoch again in another session");
}

MILLRACE_RARE void throw_no_good_sample(const std::exception_ptr& first) {
  const std::string text = "no sample of the run is valid, so the shapes of its batches are unknown";
  if (!first) throw data_error(text, "Inspect the data (examples/inspect)");
  try {
    std::rethrow_exception(first);
  } catch (const error& e) {
    throw data_error(text + "; the error of the first sample: " + e.message(), e.hint(), e.where());
  }
}

MILLRACE_RARE void throw_called_twice() {
  throw setup_error("two calls request batches of a session at the same time: got a second call, from "
                    "another thread or from a callable of the flow, expected one call at a time",
                    "Let one thread request the batches and pass them on, or create a session for each thread");
}

MILLRACE_RARE void throw_forked() {
  throw setup_error("this session was created before fork(), and its threads do not exist in the child",
                    "Create the session in the process that uses it");
}

MILLRACE_RARE void throw_after_error(const std::exception_ptr& first) {
  const std::string over = "the session has ended with an error: ", hint = "Create a new session";
  try {
    std::rethrow_exception(first);
  } catch (const error& e) {
    throw setup_error(over + e.message(), hint, e.where());
  } catch (const std::exception& e) {
    throw setup_error(over + e.what(), hint);
  }
}

MILLRACE_RARE void run_end::raise() {
  if (std::exchange(was_thrown_, true)) throw_after_error(error);
  std::rethrow_exception(error);
}

}}}   // namespace millrace::detail
