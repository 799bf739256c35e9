// error: the second argument of shards\(\) is its options
#include <millrace/run/session.hpp>
#include <millrace/item/tensor/scalar.hpp>
#include <millrace/sources/shards.hpp>

namespace mr = millrace;

struct example {
  int number;
};

example prepare(const mr::record& r) { return {mr::integer<int>(r["cls"])}; }

void train() {
  auto flow =
#if MISTAKE
      mr::shards("a.tar", 7)   // wrong here
#else
      mr::shards("a.tar", {.seed = 7})
#endif
      | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
