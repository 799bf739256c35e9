#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <array>
#include <set>

namespace mr = millrace;

TEST_CASE("the numbers of a key are fixed for ever") {
  mr::rng d({.seed = 1, .epoch = 2, .sample = 3, .stage = 4});
  // From an independent implementation of the published formula (Python integers).
  CHECK(d.bits() == 0xe4d31cad5d82a3c6);
  CHECK(d.bits() == 0x1b1d6dee6f787323);
  CHECK(d.bits() == 0xad65c76779ade73d);
}

TEST_CASE("every part of the key matters") {
  const mr::rng::key base{.seed = 1, .epoch = 1, .sample = 1, .stage = 1};
  std::set<std::uint64_t> first;
  first.insert(mr::rng(base).bits());
  for (auto part : {&mr::rng::key::seed, &mr::rng::key::epoch, &mr::rng::key::sample, &mr::rng::key::stage})
    for (std::uint64_t other : {0, 2, 3}) {
      auto k = base;
      k.*part = other;
      first.insert(mr::rng(k).bits());
    }
  CHECK(first.size() == 13);
}

TEST_CASE("bounded integers are even and reach both ends") {
  mr::rng d({.seed = 5});
  std::array<int, 6> seen{};
  for (int i = 0; i < 60'000; ++i) ++seen[static_cast<std::size_t>(d.between(10, 15) - 10)];
  for (const int n : seen) CHECK((n > 9'600 && n < 10'400));
  CHECK(d.below(1) == 0);
}

TEST_CASE("uniform stays inside its bounds and has the right mean") {
  mr::rng d({.seed = 6});
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double u = d.uniform(2, 4);
    REQUIRE((u >= 2 && u < 4));
    sum += u;
  }
  CHECK(sum / 100'000 == doctest::Approx(3).epsilon(0.005));
  int heads = 0;
  for (int i = 0; i < 100'000; ++i) heads += d.chance(0.25);
  CHECK(heads == doctest::Approx(25'000).epsilon(0.03));
}
