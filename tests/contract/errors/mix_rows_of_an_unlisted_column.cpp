// error: mix_rows<...> names a column that batch<...> does not list
#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

namespace mr = millrace;

struct example {
  std::array<float, 4> sound;
  int label;
};
example prepare(int n) { return {{}, n}; }
const std::vector<int> numbers(100, 3);

void train() {
#if MISTAKE
  auto batches = mr::batch<&example::sound>({.size = 64});
#else
  auto batches = mr::batch<&example::sound, &example::label>({.size = 64});
#endif
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | batches
            | mr::mixup<&example::sound, &example::label>()   // wrong here
            | mr::prefetch({.batches = 2});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.lambda());
}
