// error: arrives<.*string.*wanted<.*span<.*the stage after '\|' takes another type than the flow makes here
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/pack.hpp>

#include <string>

namespace mr = millrace;

std::vector<std::uint32_t> tokenize(const std::string& text) { return {text.begin(), text.end()}; }
const std::vector<std::string> texts(100, "to be");

void train() {
#if MISTAKE
  auto documents = mr::from(texts);
#else
  auto documents = mr::from(texts) | mr::map(tokenize);
#endif
  auto flow = std::move(documents)
            | mr::pack({.length = 16})   // wrong here
            | mr::batch<&mr::packed::ids>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&mr::packed::ids>());
}
