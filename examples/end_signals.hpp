// Ctrl-C, and the SIGTERM of a batch system: the first one asks the program to end, a second one ends it at once.
//
//   take_end_signals();
//   for (auto& b : run) {
//     train_step(b);
//     if (asked_to_end != 0) break;
//   }
//   if (asked_to_end != 0) return 128 + asked_to_end;     // the exit status that a shell expects
//
// Threads: asked_to_end is read by the thread that trains; no other thread of the program needs it.
#pragma once

#include <csignal>
#include <initializer_list>

/// The signal that asks the program to end; 0: none. A handler may write nothing else.
inline volatile std::sig_atomic_t asked_to_end = 0;

/// Each signal is taken once: the next of its kind ends the program as ever.
inline void take_end_signals() {
  struct sigaction once {};
  once.sa_handler = [](int signal) { asked_to_end = signal; };
  once.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &once, nullptr);
}
