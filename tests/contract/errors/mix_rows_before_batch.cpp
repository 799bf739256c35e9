// error: mix_rows, prefetch and to_device have no batch before them
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
  auto batches = mr::batch<&example::pixels, &example::label>({.size = 64});
  auto mixes = mr::mixup<&example::pixels, &example::label>({.alpha = 0.8});
#if MISTAKE
  auto flow = mr::from(numbers) | mr::map(prepare) | mixes | batches;   // wrong here
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | batches | mixes;
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.row_mixes());
}
