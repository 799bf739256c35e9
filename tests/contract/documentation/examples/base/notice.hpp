#include <millrace/millrace.hpp>
#include <ostream>
struct example { std::int32_t number; };
example prepare(const int& n);
void alarm(const std::string& shard, const std::string& text);
void show(const std::vector<int>& numbers, std::ostream& log) {
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
EXAMPLE
}
