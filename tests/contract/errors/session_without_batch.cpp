// error: a session needs a flow of batches, and this one has no batch
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
  mr::session run{mr::from(numbers) | mr::map(prepare)};   // wrong here
#else
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
