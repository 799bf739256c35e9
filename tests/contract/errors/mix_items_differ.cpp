// error: the sources of mix\(\) end in items of different types
#include <millrace/item/tensor/scalar.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/mix.hpp>

namespace mr = millrace;

struct example {
  int number;
};
struct other {
  int number;
};
example prepare(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }
#if MISTAKE
other prepare_too(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }
#else
example prepare_too(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }
#endif

void train() {
  auto one = mr::weighted{mr::indexed_shards("a.tar") | mr::map(prepare), 0.7};
  auto other = mr::weighted{mr::indexed_shards("b.tar") | mr::map(prepare_too), 0.3};
  auto flow = mr::mix({.seed = 7}, one, other)   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
