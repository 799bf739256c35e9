// error: arrives<int>.*column_of<example>.*Put map\(\) before batch: map comes first
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
#if MISTAKE
  auto flow = mr::from(numbers)
            | mr::batch<&example::number>({.size = 4})   // wrong here
            | mr::map(prepare);
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow), {.epochs = 2}};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
