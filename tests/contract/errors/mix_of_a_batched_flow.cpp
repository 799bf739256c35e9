// error: a source of mix\(\) has other stages than a shuffle and then maps
#include <millrace/item/tensor/scalar.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/mix.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }

void train() {
  auto source = mr::indexed_shards("a.tar") | mr::map(prepare);
#if MISTAKE
  mr::session run{mr::mix({}, mr::weighted{source, 0.7},   // wrong here
                          mr::weighted{source | mr::batch<&example::number>({.size = 4}), 0.3})};
#else
  mr::session run{mr::mix({}, mr::weighted{source, 0.7}, mr::weighted{source, 0.3}) |
                  mr::batch<&example::number>({.size = 4})};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
