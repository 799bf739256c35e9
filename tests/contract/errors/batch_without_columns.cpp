// error: batch<> has no columns
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
#if MISTAKE
            | mr::batch<>({.size = 4});   // wrong here
#else
            | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
