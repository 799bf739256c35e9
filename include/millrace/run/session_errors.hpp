// Throws the errors for calls that a session does not allow in its current state, such as a loop after the end of the
// run.
//
//   mr::detail::throw_finished({.epochs = 3}, 3);      // for a loop over epoch 3; `endless` for a loop over all epochs
//   mr::detail::throw_after_error(first_error);        // repeats the message of the first error
//
// Errors: setup_error. Exceptions: throw_no_good_sample() throws data_error, and run_end first throws the error that
// ended the run. Threads: the functions are pure. Only the trainer (the thread that calls next()) uses run_end.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/run/session_options.hpp>

#include <exception>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns `o` with these changes: if `world` is not set, sets its default; if an executor is set, limits `threads` to
/// the threads of the executor. Throws setup_error for invalid epochs, and if `first_epoch` and `resume` are both set.
/// Throws setup_error if `threads` is 0 with an executor, or if the executor has no threads. Throws setup_error if a
/// launcher started several processes and `world` is not set.
session_options checked(session_options o);

/// Throws the setup_error for a loop that begins after the session has delivered all epochs. `epoch` is the epoch of
/// the loop, or `endless` for a loop over all epochs.
[[noreturn]] void throw_finished(const session_options& o, std::uint64_t epoch);

/// Throws the setup_error for a loop over an `epoch` to which the session cannot return. `next` is the first epoch that
/// a loop may request.
[[noreturn]] void throw_epoch_passed(std::uint64_t epoch, std::uint64_t next);

/// Throws the data_error for a run whose samples are all damaged. `first` is the error of the first sample.
[[noreturn]] void throw_no_good_sample(const std::exception_ptr& first);

/// Throws the setup_error for two concurrent requests for a batch.
[[noreturn]] void throw_called_twice();

/// Throws the setup_error for a call in a forked child.
[[noreturn]] void throw_forked();

/// Throws the setup_error for a call to a session that the error `first` has ended. The setup_error repeats the message
/// of `first`.
[[noreturn]] void throw_after_error(const std::exception_ptr& first);

/// The reason why a run has no more batches. Used by the trainer only.
struct run_end {
  std::exception_ptr error{};
  bool over = false;   ///< whether the trainer has reached the end of the run

  /// Throws if the run ended with an error.
  void check() {
    if (error) raise();
  }
  /// The first call throws the original error. Each later call throws a setup_error that repeats the message of the
  /// original error.
  [[noreturn]] void raise();

 private:
  bool was_thrown_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/session_errors.inl>
#endif
