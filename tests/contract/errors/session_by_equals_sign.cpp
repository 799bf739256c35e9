// error: a session is made with '=' here
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers) | mr::map([](int n) { return example{n}; }) | mr::batch<&example::number>({.size = 4});
#if MISTAKE
  mr::session run = flow;   // wrong here
#else
  mr::session run{std::move(flow)};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
