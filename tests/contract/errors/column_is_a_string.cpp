// error: a column of batch<...> is text: rows are numbers
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

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
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<column>({.size = 4})   // wrong here
            | mr::to_device();
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<column>());
}
