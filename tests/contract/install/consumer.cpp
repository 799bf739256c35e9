// A user's program with an installed Millrace: a flow from its own source, and the libraries that the headers call
// (oneTBB and libjpeg by the flow, libarchive by the writer).
#include <millrace/millrace.hpp>

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace mr = millrace;

struct example {
  std::int64_t number;
};

example prepare(const int& number) { return {number}; }

int main() {
  const std::vector<int> numbers = {1, 2, 3, 4, 5, 6, 7, 8};
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4}) |
              mr::to_device({.device = mr::host_device()});
  std::int64_t sum = 0;
  auto run = mr::session{std::move(flow), {.epochs = 1}};
  for (auto& b : run)
    for (const auto number : b.get<&example::number>()) sum += number;
  std::printf("millrace %d.%d: %lld\n", MILLRACE_VERSION_MAJOR, MILLRACE_VERSION_MINOR, static_cast<long long>(sum));
  return sum == 36 ? 0 : 1;
}
