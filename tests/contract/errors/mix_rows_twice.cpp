// error: rows are mixed twice: expected one mix_rows, mixup or cutmix
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
  auto once = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::pixels, &example::label>({.size = 64})
            | mr::mixup<&example::pixels, &example::label>({.alpha = 0.8});
#if MISTAKE
  auto flow = once | mr::cutmix<&example::pixels, &example::label>();   // wrong here
#else
  auto flow = once;
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.columns());
}
