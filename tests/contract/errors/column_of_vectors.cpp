// error: a column of batch<...> is a vector whose elements are not numbers
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
#if MISTAKE
  std::vector<std::vector<float>> frames;
#else
  mr::ragged<float> frames;
#endif
};
example prepare(int n) {
#if MISTAKE
  return {{static_cast<std::size_t>(n), std::vector<float>(8)}};
#else
  return {mr::ragged(std::vector<float>(static_cast<std::size_t>(n)), {.max_length = 100})};
#endif
}
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::frames>({.size = 4});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::frames>());
}
