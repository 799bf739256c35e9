// error: the item that this stage makes cannot be moved
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
#if MISTAKE
  explicit example(int n) : number(n) {}
  example(const example&) = delete;
#endif
};
example prepare(int n) { return example{n}; }
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
