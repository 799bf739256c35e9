// error: a batch column must be a number, an array, a ragged row of numbers, or have shape\(\) with span\(\)
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

#if MISTAKE
constexpr auto column = &example::name;
#else
constexpr auto column = &example::number;
#endif

void train() {
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<column>({.size = 4}) | mr::to_device()};
  for (auto& b : run) static_cast<void>(b.get<column>());
}
