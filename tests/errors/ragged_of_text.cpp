// error: a batch column must be a number, an array, a ragged row of numbers, or have shape
#include <millrace/item/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/stages/from.hpp>
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
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<&example::words>({.size = 64})};
  for (auto& b : run) static_cast<void>(b.get<&example::words>());
}
