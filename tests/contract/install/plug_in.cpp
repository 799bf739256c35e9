// A plug-in that uses Millrace: it runs a session on workers of oneTBB, and returns the number of samples. With HOST it
// is a program without Millrace that loads a plug-in, runs it and closes it again, several times.
#ifdef HOST
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
#else
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

namespace {

struct row {
  std::int32_t number;
};

}  // namespace

extern "C" int run_session() {
  std::vector<int> numbers(2'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto flow = millrace::from(numbers) | millrace::map([](int n) { return row{n}; }) |
              millrace::batch<&row::number>({.size = 16});
  millrace::session run{std::move(flow), {.epochs = 2, .threads = 2, .notice = millrace::quiet}};
  int samples = 0;
  for (auto& b : run) samples += static_cast<int>(b.size());
  return samples;
}
#endif
