// error: bucket<...> names a column without a length: expected a ragged one, or an integer that says it
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/map.hpp>

namespace mr = millrace;

struct example {
  float weight;
  std::uint32_t frames;
};
example weigh(int n) { return {1.0F, static_cast<std::uint32_t>(n)}; }
const std::vector<int> numbers(100, 3);

void train() {
#if MISTAKE
  auto by_length = mr::bucket<&example::weight>({.boundaries = {16, 64}, .tokens = 1024});
#else
  auto by_length = mr::bucket<&example::frames>({.boundaries = {16, 64}, .tokens = 1024});
#endif
  auto flow = mr::from(numbers)
            | mr::map(weigh)
            | by_length   // wrong here
            | mr::batch<&example::weight>({.size = 64});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::weight>());
}
