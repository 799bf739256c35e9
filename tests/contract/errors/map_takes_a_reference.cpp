// error: takes its item by a reference that is not const
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
const std::vector<int> numbers(100);

void train() {
  auto flow =
#if MISTAKE
      mr::from(numbers) | mr::map([](int& n) { return example{n}; })   // wrong here
#else
      mr::from(numbers) | mr::map([](const int& n) { return example{n}; })
#endif
      | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
