// error: there are no processes to count: workers are \.threads
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
#if MISTAKE
  mr::session run{std::move(flow), {.epochs = 2, .num_workers = 8}};   // wrong here
#else
  mr::session run{std::move(flow), {.epochs = 2, .threads = 8}};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
