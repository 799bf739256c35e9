// error: arrives<example>.*column_of<other>.*batch<...> names a member of another type than the flow makes here
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <string>

namespace mr = millrace;

struct example {
  int number;
  float weight;
  std::string name;
};
example prepare(int n) { return {n, 1.0F, "x"}; }
const std::vector<int> numbers(100);

struct other {
  int number;
};
#if MISTAKE
constexpr auto column = &other::number;
#else
constexpr auto column = &example::weight;
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::number, column>({.size = 4})   // wrong here
            | mr::to_device();
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<column>());
}
