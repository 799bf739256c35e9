#include "../../../examples/linear_probe.hpp"
#include "../../../examples/view_network.hpp"

#include <doctest/doctest.h>

#include <tbb/global_control.h>

#include <cmath>

namespace mr = millrace;

namespace {

mr::tensor<std::uint8_t, 5> noise(std::array<std::size_t, 5> shape, std::uint64_t seed) {
  mr::tensor<std::uint8_t, 5> crops(shape);
  mr::rng random({.seed = seed});
  for (auto& value : crops.span()) value = static_cast<std::uint8_t>(random.below(256));
  return crops;
}

std::vector<float> weights_after(int threads) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  view_network net({.seed = 5});
  for (std::uint64_t s = 0; s < 3; ++s)
    net.step(noise({9, 2, 16, 16, 3}, s).view(), noise({9, 3, 8, 8, 3}, s + 10).view(), 1e-3);
  return net.weights();
}

}  // namespace

TEST_CASE("the gradient of every part of the network for views is the slope of the loss") {
  const auto globals = noise({5, 2, 16, 16, 3}, 1), locals = noise({5, 1, 8, 8, 3}, 2);
  for (const view_network_options parts : {view_network_options{.seed = 2, .spread = 0, .decorrelated = 0},
                                           view_network_options{.seed = 2, .alike = 0, .decorrelated = 0},
                                           view_network_options{.seed = 2, .alike = 0, .spread = 0},
                                           view_network_options{.seed = 2}}) {
    basic_view_network<double> net(parts);
    net.backward(globals.view(), locals.view());
    const std::vector<double> gradient = net.gradient();
    mr::rng random({.seed = 4});
    const double step = 1e-6;
    const std::size_t count = gradient.size(), head = conv_tower<double>::weight_count;
    double steepest = 0;
    for (int i = 0; i < 40; ++i) {
      const std::size_t places[] = {random.below(448), random.below(head), head + random.below(count - head)};
      const std::size_t at = places[i % 3];
      double& w = net.weights()[at];
      const double original = w;
      w = original + step;
      const double above = net.backward(globals.view(), locals.view());
      w = original - step;
      const double below = net.backward(globals.view(), locals.view());
      w = original;
      const double slope = (above - below) / (2 * step);
      steepest = std::max(steepest, std::abs(slope));
      INFO("weight ", at);
      REQUIRE(std::abs(slope - gradient[at]) < 1e-6 + 1e-4 * std::abs(slope));
    }
    CHECK(steepest > 1e-4);
  }
}

TEST_CASE("the network for views learns the same with any number of threads") {
  const auto one = weights_after(1);
  CHECK(one == weights_after(4));
  CHECK(one != view_network({.seed = 5}).weights());
}

TEST_CASE("features depend on the content of a crop, not on its mean color and contrast") {
  view_network net({});
  const auto crops = noise({2, 1, 16, 16, 3}, 3);
  mr::tensor<std::uint8_t, 4> pictures({3, 16, 16, 3});
  for (std::size_t i = 0; i < pictures.size() / 3; ++i) {
    const int value = crops.span()[i] / 4 * 2;   // below 128, even
    pictures.span()[i] = static_cast<std::uint8_t>(value);
    pictures.span()[i + pictures.size() / 3] = static_cast<std::uint8_t>(value / 2 + 100);
    pictures.span()[i + pictures.size() / 3 * 2] = crops.span()[i + pictures.size() / 3];
  }
  const auto f = net.features(pictures.view());
  REQUIRE(f.size() == 3 * view_network::feature_count);
  double same = 0, other = 0;
  for (std::size_t i = 0; i < view_network::feature_count; ++i) {
    same += std::abs(f[i] - f[i + view_network::feature_count]);
    other += std::abs(f[i] - f[i + 2 * view_network::feature_count]);
  }
  CHECK(same < 0.2 * other);
}

TEST_CASE("crops of other shapes are refused") {
  view_network net({});
  const auto good = noise({2, 2, 16, 16, 3}, 1), one = noise({1, 2, 16, 16, 3}, 1), odd = noise({2, 2, 12, 12, 3}, 1);
  CHECK_THROWS_WITH_AS(net.step(good.view(), odd.view(), 1e-3), doctest::Contains("[2, 2, 12, 12, 3]"),
                       mr::setup_error);
  CHECK_THROWS_AS(net.step(good.view(), one.view(), 1e-3), mr::setup_error);
  CHECK_THROWS_AS(net.step(one.view(), one.view(), 1e-3), mr::setup_error);
  CHECK_THROWS_AS(net.features(odd.view()[0]), mr::setup_error);
}

TEST_CASE("a linear probe solves linearly separable classes, and guesses if features carry no information") {
  labelled_features train, test, empty;
  mr::rng random({.seed = 1});
  for (auto* all : {&train, &test})
    for (int i = 0; i < 600; ++i) {
      const float x = static_cast<float>(random.uniform(-1, 1)), y = static_cast<float>(random.uniform(50, 60));
      all->add(std::array{x, y, 3.0F}, std::array{x > 0.2F ? 1 : x < -0.2F ? 2 : 0});
    }
  labelled_features blind = train, blind_test = test;
  for (auto* all : {&blind, &blind_test})
    for (std::size_t i = 0; i < all->features.size(); i += 3) all->features[i] = random.uniform();
  // The middle class of three on a line never has the largest linear score; 0.8 of the samples are of the others.
  CHECK(linear_probe(train, test, 3) > 0.75);
  CHECK(linear_probe(blind, blind_test, 3) < 0.5);
  CHECK_THROWS_AS(linear_probe(train, empty, 3), mr::setup_error);
}
