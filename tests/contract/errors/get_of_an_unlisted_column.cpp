// error: get<...> names a column that batch<...> does not list
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

struct labelled {
  int number;
  int label;
};
#if MISTAKE
constexpr auto column = &labelled::label;
#else
constexpr auto column = &labelled::number;
#endif

void train() {
  mr::session run{mr::from(numbers) | mr::map([](int n) { return labelled{n, n}; }) |
                  mr::batch<&labelled::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<column>());   // wrong here
}
