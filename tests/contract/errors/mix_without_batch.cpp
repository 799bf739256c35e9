// error: a session needs a flow of batches, and this one has no batch
#include <millrace/item/tensor/scalar.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/mix.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }

void train() {
  auto mixed = mr::mix({}, mr::weighted{mr::indexed_shards("a.tar"), 0.7}, mr::weighted{mr::indexed_shards("b.tar")}) |
               mr::map(prepare);
#if MISTAKE
  mr::session run{std::move(mixed)};   // wrong here
#else
  mr::session run{std::move(mixed) | mr::batch<&example::number>({.size = 4})};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
