// error: mix\(\) is given a source without its weight
#include <millrace/item/tensor/scalar.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/mix.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }

void train() {
  auto one = mr::indexed_shards("a.tar"), other = mr::indexed_shards("b.tar");
#if MISTAKE
  auto mixed = mr::mix({.on_exhausted = mr::exhausted::repeat}, one, other);   // wrong here
#else
  auto mixed = mr::mix({.on_exhausted = mr::exhausted::repeat}, mr::weighted{one}, mr::weighted{other});
#endif
  mr::session run{mixed | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
