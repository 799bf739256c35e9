// error: a batch cannot be copied
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
#if MISTAKE
  for (auto b : run) static_cast<void>(b.get<&example::number>());   // wrong here
#else
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
#endif
}
