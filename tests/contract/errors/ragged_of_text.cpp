// error: a column of batch<...> is not a row of numbers
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

#include <string>

namespace mr = millrace;

#if MISTAKE
using word = std::string;
#else
using word = std::uint32_t;
#endif
struct example {
  mr::ragged<word> words;
};
example prepare(int) { return {mr::ragged(std::vector<word>(3), {.max_length = 4})}; }
const std::vector<int> numbers(100, 3);

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::words>({.size = 64});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::words>());
}
