// error: no matching function for call to .map
// shows: millrace: wrap an overloaded function in a lambda
// errors: 2
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
const std::vector<int> numbers(100);

example prepare(int);
example prepare(int, mr::rng&);

void train() {
  auto flow =
#if MISTAKE
      mr::from(numbers) | mr::map(prepare)   // wrong here
#else
      mr::from(numbers) | mr::map([](int n) { return prepare(n); })
#endif
      | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
