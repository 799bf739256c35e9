// error: a column of batch<...> is an array whose elements are not numbers
#include <millrace/image/picture.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>

#include <array>

namespace mr = millrace;

struct example {
  std::array<mr::picture, 2> views;
  mr::picture first;
};
example prepare(const mr::record& r) { return {{mr::jpeg(r["jpg"]), mr::jpeg(r["jpg"])}, mr::jpeg(r["jpg"])}; }

#if MISTAKE
constexpr auto column = &example::views;
#else
constexpr auto column = &example::first;
#endif

void train() {
  auto flow = mr::shards("train-{000..146}.tar")
            | mr::map(prepare)
            | mr::batch<column>({.size = 4});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<column>());
}
