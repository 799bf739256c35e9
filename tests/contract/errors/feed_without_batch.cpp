// error: feed needs a flow of batches, and this one has no batch
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
  int steps = 0;
#if MISTAKE
  mr::feed(mr::from(numbers) | mr::map(prepare), {}, [&](auto&) { ++steps; });   // wrong here
#else
  mr::feed(mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4}), {},
           [&](auto&) { ++steps; });
#endif
}
