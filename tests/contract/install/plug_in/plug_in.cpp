// A plug-in that uses Millrace: it runs a session on workers of oneTBB, and returns the number of samples.
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
