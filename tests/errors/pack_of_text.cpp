// error: the stage after '\|' cannot take the item that the flow makes here
#include <millrace/run/session.hpp>
#include <millrace/stages/from.hpp>
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
  mr::session run{std::move(documents) | mr::pack({.length = 16}) | mr::batch<&mr::packed::ids>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<&mr::packed::ids>());
}
