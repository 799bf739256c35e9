// The errors of a session that is asked for more than it has: no call after the end returns silently.
//
//   mr::detail::throw_finished({.epochs = 3}, 3);      // for a loop over epoch 3; endless: over the rest of the run
//   mr::detail::throw_after_error(first_error);        // repeats the message of the first error
//
// Errors: always setup_error. Threads: pure functions; run_end belongs to the trainer.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/run/session_options.hpp>

#include <exception>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns `o`. Throws setup_error if it leaves nothing to do (0 epochs).
inline const session_options& checked(const session_options& o) {
  if (o.epochs == 0)
    throw setup_error("session_options.epochs is wrong: got 0, expected at least 1", "Leave it out for one epoch");
  return o;
}

/// Throws the setup_error of a loop over `epoch` (endless: over the rest) when the session has delivered everything.
[[noreturn]] inline void throw_finished(const session_options& o, std::uint64_t epoch) {
  const std::string wanted = epoch == endless ? "another loop" : "a loop over epoch " + std::to_string(epoch);
  const std::string all = o.epochs == 1 ? "its one epoch" : "all its " + std::to_string(o.epochs) + " epochs";
  throw setup_error("the session is over: got " + wanted + ", expected none after " + all,
                    "Raise session_options.epochs, or make a new session");
}

/// Throws the setup_error of each call after the error `first` has ended the session; it repeats the message.
[[noreturn]] inline void throw_after_error(const std::exception_ptr& first) {
  const std::string over = "the session is over, it ended with an error: ", hint = "Make a new session";
  try {
    std::rethrow_exception(first);
  } catch (const error& e) {
    throw setup_error(over + e.message(), hint, e.where());
  } catch (const std::exception& e) {
    throw setup_error(over + e.what(), hint);
  }
}

/// The reason why a run has no more batches. Used by the trainer only.
struct run_end {
  std::exception_ptr error{};
  bool over = false;   ///< the trainer has seen the end of the run

  /// Throws if the run ended with an error.
  void check() {
    if (error) raise();
  }
  /// Throws the error itself the first time, and that the session is over each later time.
  [[noreturn]] void raise() {
    if (std::exchange(thrown_, true)) throw_after_error(error);
    std::rethrow_exception(error);
  }

 private:
  bool thrown_ = false;
};

}}}  // namespace millrace::detail
