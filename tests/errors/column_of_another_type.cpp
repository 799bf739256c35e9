// error: names a member of another type than the item that the flow makes
#include <millrace/run/session.hpp>
#include <millrace/stages/from.hpp>

#include <string>

namespace mr = millrace;

struct example {
  int number;
  std::string name;
};
example prepare(int n) { return {n, "x"}; }
const std::vector<int> numbers(100);

struct other {
  int number;
};
#if MISTAKE
constexpr auto column = &other::number;
#else
constexpr auto column = &example::number;
#endif

void train() {
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<column>({.size = 4}) | mr::to_device()};
  for (auto& b : run) static_cast<void>(b.get<column>());
}
