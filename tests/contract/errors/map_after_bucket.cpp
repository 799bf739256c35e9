// error: this stage stands behind bucket: only batch<...> may follow bucket
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/map.hpp>

#include <string>

namespace mr = millrace;

struct example {
  mr::ragged<std::uint8_t> letters;
  std::int32_t label;
};
example spell(const std::string& text) {
  return {mr::ragged(std::vector<std::uint8_t>(text.begin(), text.end()), {.max_length = 64}), 1};
}
example with_label(example e) { return {e.letters, 2}; }
const std::vector<std::string> texts(100, "to be");

void train() {
  auto by_length = mr::bucket<&example::letters>({.boundaries = {16, 64}, .tokens = 1024});
#if MISTAKE
  auto flow = mr::from(texts) | mr::map(spell) | by_length | mr::map(with_label);   // wrong here
#else
  auto flow = mr::from(texts) | mr::map(spell) | mr::map(with_label) | by_length;
#endif
  mr::session run{std::move(flow) | mr::batch<&example::letters, &example::label>({.size = 64})};
  for (auto& b : run) static_cast<void>(b.get<&example::letters>());
}
