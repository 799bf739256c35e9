// Counts calls of the CUDA runtime that wait for the device, and calls that create, free or register resources.
//
//   const wrapped_calls before;                            // so far
//   loop();
//   (wrapped_calls() - before).waits;                      // by this thread
//   (wrapped_calls() - before).resource_calls;             // by all threads of the program
//
// A program that is linked with the arguments of meson.build (--wrap=NAME for each name in wrapped_calls.cpp) calls
// these counters first and then the runtime, the fake or the real one. Calls of the library and of the tests count;
// calls inside the runtime do not.
#pragma once

struct wrapped_calls {
  long waits, resource_calls;

  wrapped_calls();
  wrapped_calls(long w, long m) : waits(w), resource_calls(m) {}
  wrapped_calls operator-(const wrapped_calls& before) const {
    return {waits - before.waits, resource_calls - before.resource_calls};
  }
};
