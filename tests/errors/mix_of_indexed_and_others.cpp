// error: mix\(\) takes sources that all have an index \(indexed_shards\), or none that has one
#include <millrace/io/shards.hpp>
#include <millrace/item/scalar.hpp>
#include <millrace/run/mix.hpp>
#include <millrace/run/session.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }

void train() {
#if MISTAKE
  auto mixed = mr::mix({}, mr::weighted{mr::shards("a.tar")}, mr::weighted{mr::indexed_shards("b.tar")});
#else
  auto mixed = mr::mix({}, mr::weighted{mr::shards("a.tar")}, mr::weighted{mr::shards("b.tar")});
#endif
  mr::session run{std::move(mixed) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
