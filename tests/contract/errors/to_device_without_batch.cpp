// error: mix_rows, prefetch and to_device have no batch before them
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

void train() {
#if MISTAKE
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::to_device();   // wrong here
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4}) | mr::to_device();
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
