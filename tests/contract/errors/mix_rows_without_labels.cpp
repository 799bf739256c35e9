// error: the second column of mix_rows<...> holds no labels: expected a number for each row
#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

namespace mr = millrace;

struct example {
  std::array<float, 4> sound;
  std::array<float, 10> dense;
  int label;
};
example prepare(int n) { return {{}, {}, n}; }
const std::vector<int> numbers(100, 3);

#if MISTAKE
constexpr auto labels = &example::dense;
#else
constexpr auto labels = &example::label;
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::sound, &example::dense, &example::label>({.size = 64})
            | mr::mix_rows<&example::sound, labels>({.mixup_alpha = 1});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.label_a());
}
