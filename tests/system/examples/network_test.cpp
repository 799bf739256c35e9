#include "../../../examples/network.hpp"
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
