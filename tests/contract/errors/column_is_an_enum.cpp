// error: a column of batch<...> is an enum: rows are numbers
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

enum class kind { cat, dog };
#if MISTAKE
struct example { kind label; };
#else
struct example { std::int32_t label; };
#endif
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers) | mr::map([](int n) { return example{static_cast<decltype(example::label)>(n % 2)}; })
            | mr::batch<&example::label>({.size = 4});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::label>());
}
