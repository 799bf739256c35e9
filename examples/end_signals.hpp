// Ctrl-C, and the SIGTERM of a batch system: the first signal requests the end of the program, a second one ends it.
//
//   handle_end_signals();
//   for (auto& b : run) {
//     train_step(b);
//     if (end_signal != 0) break;
//   }
//   if (end_signal != 0) return 128 + end_signal;     // the exit status that a shell expects
//
// Threads: only the training thread reads end_signal.
#pragma once

#include <csignal>
#include <initializer_list>

/// The signal that requests the end of the program; 0: none. A signal handler can portably write only this type.
inline volatile std::sig_atomic_t end_signal = 0;

/// Handles each signal once: a second signal of the same kind has its default effect, and ends the program.
inline void handle_end_signals() {
  struct sigaction once {};
  once.sa_handler = [](int signal) { end_signal = signal; };
  once.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &once, nullptr);
}
