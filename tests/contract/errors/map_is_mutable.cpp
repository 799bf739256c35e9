// error: the callable in map\(\) is 'mutable'
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
  auto count = [seen = 0](int n) mutable { return n + ++seen; };
#else
  auto count = [seen = 0](int n) { return n + seen; };
#endif
  auto flow = mr::from(numbers)
            | mr::map(count)   // wrong here
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
