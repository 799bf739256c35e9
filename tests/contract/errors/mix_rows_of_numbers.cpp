// error: the first column of mix_rows<...> has no rows that can be mixed: expected u8, f16, bf16 or f32
#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

namespace mr = millrace;

struct example {
  std::array<std::int64_t, 4> ids;
  std::array<float, 4> sound;
  int label;
};
example prepare(int n) { return {{}, {}, n}; }
const std::vector<int> numbers(100, 3);

#if MISTAKE
constexpr auto rows = &example::ids;
#else
constexpr auto rows = &example::sound;
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::ids, &example::sound, &example::label>({.size = 64})
            | mr::mixup<rows, &example::label>();   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.label_b());
}
