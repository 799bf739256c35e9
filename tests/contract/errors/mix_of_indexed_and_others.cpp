// error: mix\(\) is given sources with an index \(indexed_shards\) and others
#include <millrace/item/tensor/scalar.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/mix.hpp>
#include <millrace/sources/shards.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }

void train() {
#if MISTAKE
  auto one = mr::weighted{mr::shards("a.tar")};
  auto mixed = mr::mix({}, one, mr::weighted{mr::indexed_shards("b.tar")});   // wrong here
#else
  auto mixed = mr::mix({}, mr::weighted{mr::shards("a.tar")}, mr::weighted{mr::shards("b.tar")});
#endif
  mr::session run{std::move(mixed) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
