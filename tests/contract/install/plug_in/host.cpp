// A program without Millrace that loads a plug-in, runs it and closes it again, several times.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

int main(int, char** arguments) {
  for (int times = 0; times < std::atoi(arguments[2]); ++times) {
    void* const plug_in = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!plug_in) return std::puts(dlerror()), 1;
    auto* const run = reinterpret_cast<int (*)()>(dlsym(plug_in, "run_session"));
    if (!run || run() != 4'000) return std::puts("it did not run"), 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));   // no session, no work: it may be closed
    if (dlclose(plug_in) != 0) return std::puts(dlerror()), 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));   // detects threads that run unloaded code
  }
  std::puts(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) ? "stays" : "gone");
}
