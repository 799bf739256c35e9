// What the linker counted: calls of the CUDA runtime that wait for the device, and those that make, free or register.
//
//   const wrapped_calls before;                            // so far
//   loop();
//   (wrapped_calls() - before).waits;                      // by this thread; .made by all threads of the program
//
// A program that is linked with the arguments of meson.build (--wrap=NAME for each name in wrapped_calls.cpp) calls our
// counters first and then the runtime, the fake one or the real one. Inline code of ours is counted, and so is the
// tests' own; what the runtime calls inside itself is not.
#pragma once

struct wrapped_calls {
  long waits, made;

  wrapped_calls();
  wrapped_calls(long w, long m) : waits(w), made(m) {}
  wrapped_calls operator-(const wrapped_calls& before) const { return {waits - before.waits, made - before.made}; }
};
