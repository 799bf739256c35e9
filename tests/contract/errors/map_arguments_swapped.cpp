// error: the callable in map\(\) takes its arguments in another order: expected \(item, rng&, scratch&\)
#include <millrace/base/random.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
#if MISTAKE
example prepare(mr::rng& random, int n) { return {n + static_cast<int>(random.below(3))}; }
#else
example prepare(int n, mr::rng& random) { return {n + static_cast<int>(random.below(3))}; }
#endif
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
