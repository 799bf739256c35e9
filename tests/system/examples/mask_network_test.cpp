#include "../../../examples/mask_network.hpp"

#include <doctest/doctest.h>

#include <tbb/global_control.h>

#include <cmath>

namespace mr = millrace;

namespace {

/// Random images with random masks, in which some pixels are ignored.
struct masked_noise {
  mr::tensor<std::uint8_t, 4> pixels;
  mr::tensor<std::uint8_t, 3> masks;

  masked_noise(std::size_t samples, std::size_t side, std::uint64_t seed)
      : pixels({samples, side, side, 3}), masks({samples, side, side}) {
    mr::rng random({.seed = seed});
    for (auto& value : pixels.span()) value = static_cast<std::uint8_t>(random.below(256));
    for (auto& value : masks.span()) value = random.below(8) == 0 ? 255 : static_cast<std::uint8_t>(random.below(5));
  }
  mr::tensor_view<const std::uint8_t, 4> x() const { return pixels.view(); }
  mr::tensor_view<const std::uint8_t, 3> y() const { return masks.view(); }
};

std::vector<float> weights_after(int threads) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  mask_network net({.side = 16, .classes = 5, .seed = 5});
  for (std::uint64_t s = 0; s < 3; ++s) {
    const masked_noise b(18, 16, s);
    net.step(b.x(), b.y(), 1e-3);
  }
  return net.weights();
}

}  // namespace

TEST_CASE("the gradient of every part of the network for masks is the slope of the loss") {
  basic_mask_network<double> net({.side = 16, .classes = 5, .seed = 2});
  const masked_noise b(6, 16, 3);
  net.backward(b.x(), b.y());
  const std::vector<double> gradient = net.gradient();
  mr::rng random({.seed = 4});
  const double step = 1e-6;
  const std::size_t count = gradient.size(), head = conv_tower<double>::weight_count;
  int moved = 0;
  for (int i = 0; i < 160; ++i) {
    const std::size_t places[] = {random.below(448), random.below(head), head + random.below(count - head),
                                  count - 1 - random.below(16)};
    const std::size_t at = places[i % 4];
    double& w = net.weights()[at];
    const double original = w;
    w = original + step;
    const double above = net.evaluate(b.x(), b.y()).loss_sum;
    w = original - step;
    const double below = net.evaluate(b.x(), b.y()).loss_sum;
    w = original;
    const double slope = (above - below) / (2 * step);
    INFO("weight ", at);
    REQUIRE(std::abs(slope - gradient[at]) < 1e-4 + 1e-4 * std::abs(slope));
    moved += std::abs(slope) > 1e-3;
  }
  CHECK(moved > 60);
}

TEST_CASE("the network for masks learns the same with any number of threads") {
  const auto one = weights_after(1);
  CHECK(one == weights_after(4));
  CHECK(one != mask_network({.side = 16, .classes = 5, .seed = 5}).weights());
}

TEST_CASE("the counts match the predictions, without ignored pixels") {
  mask_network net({.side = 16, .classes = 5, .seed = 1});
  const masked_noise b(5, 16, 9);
  const mask_outcome outcome = net.evaluate(b.x(), b.y());
  mask_outcome expected;
  for (std::size_t i = 0; i < b.masks.size(); ++i)
    if (b.masks.span()[i] != 255) {
      ++expected.counts[b.masks.span()[i]][net.predicted().span()[i]];
      ++expected.pixels;
    }
  CHECK(outcome.counts == expected.counts);
  CHECK(outcome.pixels == expected.pixels);
}

TEST_CASE("mean IoU counts the classes that occur or are predicted") {
  mask_outcome outcome;
  CHECK(outcome.mean_iou() == 0);
  outcome.counts[0][0] = 6, outcome.counts[0][1] = 2, outcome.counts[1][1] = 2;   // 6 of 8, 2 of 4
  CHECK(outcome.mean_iou() == doctest::Approx((0.75 + 0.5) / 2));
  outcome.counts[1][7] = 4;   // a class that is only predicted: 2 of 8, 0 of 4
  CHECK(outcome.mean_iou() == doctest::Approx((0.75 + 0.25) / 3));
  mask_outcome twice = outcome;
  twice.add(outcome);
  CHECK(twice.mean_iou() == outcome.mean_iou());
}

TEST_CASE("images and masks of other sizes or classes are refused") {
  mask_network net({.side = 16, .classes = 5});
  const masked_noise b(2, 16, 1), larger(2, 24, 1), fewer(1, 16, 1);
  CHECK_THROWS_WITH_AS(net.step(larger.x(), larger.y(), 1e-3), doctest::Contains("expected a side of 16"),
                       mr::setup_error);
  CHECK_THROWS_AS(net.step(b.x(), fewer.y(), 1e-3), mr::setup_error);
  masked_noise stranger(2, 16, 1);
  stranger.masks.span()[7] = 5;
  CHECK_THROWS_WITH_AS(net.step(stranger.x(), stranger.y(), 1e-3), doctest::Contains("class 5"), mr::setup_error);
  CHECK_THROWS_AS(mask_network({.side = 12}), mr::setup_error);
  CHECK_THROWS_AS(mask_network({.classes = 17}), mr::setup_error);
}
