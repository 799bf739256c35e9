// error: only mix_rows, prefetch and to_device may follow batch
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/shuffle.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
#if MISTAKE
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4})
            | mr::shuffle({.window = 16});   // wrong here
#else
  auto flow = mr::from(numbers)
            | mr::shuffle({.window = 16})
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
