// error: a column of batch<...> is an array whose elements are not columns
#include <millrace/image/picture/picture.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>

#include <array>
#include <string>

namespace mr = millrace;

struct example {
  std::array<std::string, 2> captions;
  std::array<mr::picture, 2> views;
};
example prepare(const mr::record& r) {
  const mr::picture p = mr::jpeg(r["jpg"]);
  return {{std::string(r["a"].text()), std::string(r["b"].text())}, {p.resize(96, 96), p.flip().resize(96, 96)}};
}

#if MISTAKE
constexpr auto column = &example::captions;
#else
constexpr auto column = &example::views;
#endif

void train() {
  auto flow = mr::shards("train-{000..146}.tar")
            | mr::map(prepare)
            | mr::batch<column>({.size = 4});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<column>());
}
