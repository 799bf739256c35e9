// The errors of calls that a session cannot serve: no call after the end returns silently.
//
//   mr::detail::throw_finished({.epochs = 3}, 3);      // for a loop over epoch 3; endless: over the rest of the run
//   mr::detail::throw_after_error(first_error);        // repeats the message of the first error
//
// Errors: always setup_error. Threads: pure functions; run_end belongs to the trainer.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/run/session_options.hpp>

#include <exception>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns `o` with its world set and, with an executor, the threads that it uses. Throws setup_error if it has no work
/// (0 epochs), has an executor and no threads, or no world where a launcher started several processes.
session_options checked(session_options o);

/// Throws the setup_error of a loop over `epoch` (endless: over the rest) when the session has delivered everything.
[[noreturn]] void throw_finished(const session_options& o, std::uint64_t epoch);

/// Throws the setup_error of a loop over `epoch`, when the session cannot return to it: `next` is the first epoch that
/// a loop may name.
[[noreturn]] void throw_epoch_passed(std::uint64_t epoch, std::uint64_t next);

/// Throws the setup_error of a call for a batch while another one has not returned.
[[noreturn]] void throw_called_twice();

/// Throws the setup_error of a call in a forked child.
[[noreturn]] void throw_forked();

/// Throws the setup_error of each call after the error `first` has ended the session; it repeats the message.
[[noreturn]] void throw_after_error(const std::exception_ptr& first);

/// The reason why a run has no more batches. Used by the trainer only.
struct run_end {
  std::exception_ptr error{};
  bool over = false;   ///< the trainer has reached the end of the run

  /// Throws if the run ended with an error.
  void check() {
    if (error) raise();
  }
  /// Throws the error itself the first time, and a setup_error that the session is over each later time.
  [[noreturn]] void raise();

 private:
  bool was_thrown_ = false;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/session_errors.inl>
#endif
