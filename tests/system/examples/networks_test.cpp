// The networks of the examples: gradients, threads and files; those for masks and for views too.
#include "../../../examples/linear_probe.hpp"
#include "../../../examples/mask_network.hpp"
#include "../../../examples/network.hpp"
#include "../../../examples/view_network.hpp"
#include "../../temporary_folder.hpp"
#include "labelled_noise.hpp"

#include <doctest/doctest.h>
#include <tbb/global_control.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace mr = millrace;

namespace {

std::vector<float> weights_after(int threads, std::size_t steps) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  network net({.side = 32, .seed = 5});
  for (std::size_t s = 0; s < steps; ++s) {
    const labelled_noise b(18, 32, s);
    net.step(b.x(), b.y(), 1e-3);
  }
  return net.weights();
}

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

std::vector<float> mask_weights_after(int threads) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  mask_network net({.side = 16, .classes = 5, .seed = 5});
  for (std::uint64_t s = 0; s < 3; ++s) {
    const masked_noise b(18, 16, s);
    net.step(b.x(), b.y(), 1e-3);
  }
  return net.weights();
}

mr::tensor<std::uint8_t, 5> noise(std::array<std::size_t, 5> shape, std::uint64_t seed) {
  mr::tensor<std::uint8_t, 5> crops(shape);
  mr::rng random({.seed = seed});
  for (auto& value : crops.span()) value = static_cast<std::uint8_t>(random.below(256));
  return crops;
}

std::vector<float> view_weights_after(int threads) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  view_network net({.seed = 5});
  for (std::uint64_t s = 0; s < 3; ++s)
    net.step(noise({9, 2, 16, 16, 3}, s).view(), noise({9, 3, 8, 8, 3}, s + 10).view(), 1e-3);
  return net.weights();
}

}  // namespace

TEST_CASE("the kernel is a product of matrices, for every number of rows, and overlapping and transposed operands") {
  mr::rng random({.seed = 1});
  for (std::size_t rows = 1; rows < 10; ++rows)
    for (const std::size_t columns : {16U, 32U})
      for (const bool transposed : {false, true}) {
        const std::size_t depth = 13;
        std::vector<float> left(rows * depth + 50), right(depth * columns), out(rows * columns), expected;
        for (auto* v : {&left, &right, &out})
          for (float& f : *v) f = static_cast<float>(random.between(-8, 8));   // sums of small integers are exact
        const std::size_t left_row = transposed ? 1 : 5;   // 5 < depth: rows overlap
        const std::size_t left_depth = transposed ? rows : 1;
        expected = out;
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t d = 0; d < depth; ++d)
            for (std::size_t c = 0; c < columns; ++c)
              expected[r * columns + c] += left[r * left_row + d * left_depth] * right[d * columns + c];
        network_kernel::product<float> p{.out = out.data(), .left = left.data(), .right = right.data(), .rows = rows,
                                         .columns = columns, .depth = depth, .left_row = left_row,
                                         .left_depth = left_depth};
        const std::vector<float> before = out;
        network_kernel::multiply_add(p);
        REQUIRE(out == expected);
        out = before;
        network_kernel::all_tiles(p);
        REQUIRE(out == expected);
      }
}

TEST_CASE("every layer's gradient is the slope of the loss") {
  basic_network<double> net({.side = 16, .classes = 10, .seed = 2});
  const labelled_noise b(6, 16, 3);
  net.backward(b.x(), b.y());
  const std::vector<double> gradient = net.gradient();
  const auto loss = [&] { return net.evaluate(b.x(), b.y()).loss_sum; };
  mr::rng random({.seed = 4});
  const double step = 1e-6;
  const std::size_t count = gradient.size();
  for (int i = 0; i < 120; ++i) {
    // A third in the small first block, a third anywhere, a third in the dense layer at the end.
    const std::size_t places[] = {random.below(448), random.below(count), count - 1 - random.below(500)};
    const std::size_t at = places[i % 3];
    double& w = net.weights()[at];
    const double original = w;
    w = original + step;
    const double above = loss();
    w = original - step;
    const double below = loss();
    w = original;
    const double slope = (above - below) / (2 * step);
    INFO("weight ", at);
    REQUIRE(std::abs(slope - gradient[at]) < 1e-5 + 1e-4 * std::abs(slope));
  }
}

TEST_CASE("the weights depend on the seed, not on the number of threads") {
  const auto one = weights_after(1, 3), many = weights_after(4, 3);
  CHECK(one == many);
  CHECK(network({.seed = 1}).weights() == network({.seed = 1}).weights());
  CHECK(network({.seed = 1}).weights() != network({.seed = 2}).weights());
}

TEST_CASE("accumulated batches produce the same update as one large batch") {
  const labelled_noise all(16, 32, 7);
  network unsplit({.seed = 3}), halves({.seed = 3});
  unsplit.step(all.x(), all.y(), 1e-3);
  auto x = all.x();
  auto y = all.y();
  x.shape[0] = y.shape[0] = 8;
  network_outcome outcome = halves.backward(x, y);
  x.data += 8 * 32 * 32 * 3;
  y.data += 8;
  outcome.add(halves.backward(x, y));
  halves.update(1e-3);
  CHECK(outcome.samples == 16);
  for (std::size_t i = 0; i < unsplit.weights().size(); ++i)
    REQUIRE(std::abs(unsplit.weights()[i] - halves.weights()[i]) < 2e-5F);
}

TEST_CASE("gradients that are combined elsewhere produce the same update") {
  const labelled_noise all(16, 32, 7);
  network unsplit({.seed = 3}), pieced({.seed = 3});
  auto x = all.x();
  auto y = all.y();
  x.shape[0] = y.shape[0] = 8;
  std::vector<float> sum(unsplit.gradient().size(), 0);
  const std::vector<float> nothing = sum;
  for (int half = 0; half < 2; ++half) {
    unsplit.backward(x, y);
    pieced.backward(x, y);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += pieced.gradient()[i];
    pieced.set_gradient(nothing, 0);
    pieced.update(1e-3);   // no samples: no update
    x.data += 8 * 32 * 32 * 3;
    y.data += 8;
  }
  pieced.set_gradient(sum, 16);
  unsplit.update(1e-3);
  pieced.update(1e-3);
  for (std::size_t i = 0; i < sum.size(); ++i)   // four chunks, summed in another order
    REQUIRE(std::abs(unsplit.weights()[i] - pieced.weights()[i]) < 2e-5F);
}

TEST_CASE("the network memorizes a batch, and its logits match the outcome") {
  network net({.seed = 1});
  const labelled_noise b(20, 32, 9);
  const double before = net.evaluate(b.x(), b.y()).mean_loss();
  CHECK(before > 1.5);
  for (int i = 0; i < 60; ++i) net.step(b.x(), b.y(), 2e-3);
  const auto after = net.evaluate(b.x(), b.y());
  CHECK(after.accuracy() == 1);
  CHECK(after.mean_loss() < 0.1);
  const auto logits = net.logits();
  CHECK(logits.shape == std::array<std::size_t, 2>{20, 10});
  for (std::size_t i = 0; i < 20; ++i) {
    const auto row = logits.host().subspan(i * 10, 10);
    CHECK(std::max_element(row.begin(), row.end()) - row.begin() == b.labels[i]);
  }
}

TEST_CASE("u8 pixels and the same pixels as f32 in 0..1 have the same loss") {
  network net({.seed = 1});
  const labelled_noise b(4, 32, 2);
  std::vector<float> pixels;
  for (const std::uint8_t p : b.pixels) pixels.push_back(static_cast<float>(p) / 255);
  const mr::tensor_view<const float, 4> x{.data = pixels.data(), .shape = b.x().shape};
  CHECK(net.evaluate(x, b.y()).loss_sum == doctest::Approx(net.evaluate(b.x(), b.y()).loss_sum).epsilon(1e-4));
}

TEST_CASE("a loaded network continues exactly where the saved one stopped, and other files are refused") {
  const temporary_folder folder;
  const std::string path = folder / "model.bin";
  const labelled_noise b(8, 32, 1);
  network first({.seed = 1}), second({.seed = 2});
  first.step(b.x(), b.y(), 1e-3);
  first.save(path, "position of the data");
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
  CHECK(second.load(path) == "position of the data");
  first.step(b.x(), b.y(), 1e-3);
  second.step(b.x(), b.y(), 1e-3);
  CHECK(first.weights() == second.weights());

  network larger({.side = 40});
  CHECK_THROWS_AS(larger.load(path), mr::data_error);
  basic_network<double> wider({.side = 32});
  CHECK_THROWS_AS(wider.load(path), mr::data_error);
  const auto weights_before = second.weights();
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(5'000).put('\x55');
  CHECK_THROWS_AS(second.load(path), mr::data_error);
  first.save(path, "a note");
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(-2, std::ios::end).put('x');
  CHECK_THROWS_AS(second.load(path), mr::data_error);
  std::filesystem::resize_file(path, 20'000);
  CHECK_THROWS_AS(second.load(path), mr::data_error);
  CHECK(second.weights() == weights_before);
  CHECK_THROWS_AS(second.load(folder / "missing"), mr::io_error);
  CHECK_THROWS_AS(second.save(folder / "missing/model.bin"), mr::io_error);
}

TEST_CASE("wrong shapes and labels are named") {
  network net({});
  const labelled_noise b(4, 40, 1);
  CHECK_THROWS_AS(net.evaluate(b.x(), b.y()), mr::setup_error);
  labelled_noise wrong(4, 32, 1);
  wrong.labels[2] = 10;
  CHECK_THROWS_AS(net.evaluate(wrong.x(), wrong.y()), mr::setup_error);
  CHECK_THROWS_AS(network({.side = 30}), mr::setup_error);
}

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
  const auto one = mask_weights_after(1);
  CHECK(one == mask_weights_after(4));
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
  const auto one = view_weights_after(1);
  CHECK(one == view_weights_after(4));
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
