// What a session says to whoever asks it for more than it has: nothing that is over ends in silence.
//
//   throw_finished({.epochs = 3}, 3);      // a loop over epoch 3; endless: over whatever comes
//   throw_after_error(first_error);        // repeats what that said
//
// Errors: setup_error, always. Threads: pure.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/run/session_options.hpp>

#include <exception>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// Refuses options that leave nothing to do.
template <class = void>
const session_options& checked(const session_options& o) {
  if (o.epochs == 0)
    throw setup_error("session_options.epochs is wrong: got 0, expected at least 1", "Leave it out for one epoch");
  return o;
}

/// To a loop over `epoch` (endless: over whatever comes) of a session that has delivered all.
template <class = void>
[[noreturn]] void throw_finished(const session_options& o, std::uint64_t epoch) {
  const std::string wanted = epoch == endless ? "another loop" : "a loop over epoch " + std::to_string(epoch);
  const std::string all = o.epochs == 1 ? "its one epoch" : "all its " + std::to_string(o.epochs) + " epochs";
  throw setup_error("the session is over: got " + wanted + ", expected none after " + all,
                    "Raise session_options.epochs, or make a new session");
}

/// To whoever asks a session for more that has ended with `first`.
template <class = void>
[[noreturn]] void throw_after_error(const std::exception_ptr& first) {
  const std::string over = "the session is over, it ended with an error: ", hint = "Make a new session";
  try {
    std::rethrow_exception(first);
  } catch (const error& e) {
    throw setup_error(over + e.message(), hint, e.where());
  } catch (const std::exception& e) {
    throw setup_error(over + e.what(), hint);
  }
}

/// Why a run has no more batches. Of the trainer's thread.
struct run_end {
  std::exception_ptr error{};
  bool over = false;   ///< the trainer was told that there are no more

  void check() {
    if (error) raise();
  }
  /// The error itself once, then that the session is over.
  [[noreturn]] void raise() {
    if (std::exchange(thrown_, true)) throw_after_error(error);
    std::rethrow_exception(error);
  }

 private:
  bool thrown_ = false;
};

}}  // namespace millrace
