// error: from\(\) is given no source: expected a range, a callable that returns std::optional<item>, or a type
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
  auto source = [] { return 7; };
#else
  auto source = []() -> std::optional<int> { return std::nullopt; };
#endif
  mr::session run{mr::from(source) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};   // wrong here
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
