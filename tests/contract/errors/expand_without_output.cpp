// error: the type in expand\(\) is incomplete: expected 'using output = T;', 'max_outputs\(const In&\) const' and
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

struct doubled {
#if !MISTAKE
  using output = example;
#endif
  std::size_t max_outputs(const int&) const { return 2; }
  void push(int n, auto& emit) const {
    emit(prepare(n));
    emit(prepare(n));
  }
};

void train() {
  auto flow = mr::from(numbers)
            | mr::expand(doubled{})   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
