// error: arrives<int>.*wanted<.*string.*the stage after '\|' takes another type than the flow makes here
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <string>

namespace mr = millrace;

struct example {
  int number;
  std::string name;
};
example prepare(int n) { return {n, "x"}; }
const std::vector<int> numbers(100);

#if MISTAKE
int wrong(const std::string& s) { return static_cast<int>(s.size()); }
#else
int wrong(int n) { return n; }
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(wrong)   // wrong here
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
