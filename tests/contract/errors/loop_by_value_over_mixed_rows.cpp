// error: a batch cannot be copied: it is a lease on memory
#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

namespace mr = millrace;

struct example {
  mr::tensor<float, 3> pixels;
  int label;
};
example prepare(int n) { return {mr::tensor<float, 3>({3, 8, 8}), n}; }
const std::vector<int> numbers(100, 3);

void train() {
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 64}) |
                  mr::mixup<&example::pixels, &example::label>()};
#if MISTAKE
  for (auto b : run) static_cast<void>(b.lambda());   // wrong here
#else
  for (auto& b : run) static_cast<void>(b.lambda());
#endif
}
