// Compares the network's kernels, whose bodies run on the host, with the network of network.hpp.
#include "../../../examples/gpu_network.hpp"
#include "../../../examples/network.hpp"
#include "labelled_noise.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mr = millrace;

namespace {

float furthest_apart(const float* one, const float* other, std::size_t count) {
  float most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::abs(one[i] - other[i]));
  return most;
}

}  // namespace

TEST_CASE("the kernels compute the host network's losses, logits and weights in each step") {
  for (const std::size_t side : {8U, 16U}) {
    network host({.side = side, .seed = 3});
    gpu_network kernels({.side = side, .max_rows = 7, .on_host = true});
    REQUIRE(kernels.weight_count() == host.weights().size());
    kernels.set_weights(host.weights().data());
    for (std::size_t step = 0; step < 6; ++step) {
      CAPTURE(step);
      const labelled_noise b(step % 2 ? 5 : 7, side, step);   // shorter batches leave rows of the previous one
      const double loss = host.backward(b.x(), b.y()).mean_loss();
      kernels.backward(b.x(), b.y(), {});
      double sum = 0;
      for (const float l : kernels.losses().host()) sum += static_cast<double>(l);
      CHECK(sum / static_cast<double>(b.labels.size()) == doctest::Approx(loss).epsilon(1e-4));
      REQUIRE(kernels.logits().shape == host.logits().shape);
      CHECK(furthest_apart(kernels.logits().data, host.logits().data, host.logits().size()) < 1e-3F);
      if (step == 2) continue;   // accumulates the gradients of two batches
      host.update(1e-3);
      kernels.update(1e-3, {});
    }
    CHECK(kernels.updates() == 5);
    std::vector<float> state(3 * kernels.weight_count());
    kernels.read_state(state.data(), {});
    // Adam moves a weight by the rate for any size of its gradient, so rounding may change the direction of one move.
    CHECK(furthest_apart(state.data(), host.weights().data(), host.weights().size()) < 4e-3F);
    double square = 0;
    for (std::size_t i = 0; i < host.weights().size(); ++i)
      square += std::pow(static_cast<double>(state[i]) - static_cast<double>(host.weights()[i]), 2);
    CHECK(std::sqrt(square / static_cast<double>(host.weights().size())) < 1e-4);
  }
}

TEST_CASE("totals of evaluations equal the host network's, and an invalid label is reported") {
  network host({.side = 16, .seed = 4});
  gpu_network kernels({.side = 16, .max_rows = 9, .on_host = true});
  kernels.set_weights(host.weights().data());
  kernels.backward(labelled_noise(9, 16, 1).x(), labelled_noise(9, 16, 1).y(), {});   // does not count
  kernels.restart_totals({});
  network_outcome expected;
  for (std::size_t rows : {9U, 4U}) {
    const labelled_noise b(rows, 16, rows);
    expected.add(host.evaluate(b.x(), b.y()));
    kernels.evaluate(b.x(), b.y(), {});
  }
  const gpu_network_totals totals = kernels.read_totals({});
  CHECK(totals.samples == 13);
  CHECK(totals.correct == expected.correct);
  CHECK(totals.loss_sum == doctest::Approx(expected.loss_sum).epsilon(1e-4));

  labelled_noise wrong(2, 16, 5);
  wrong.labels[1] = 10;
  kernels.evaluate(wrong.x(), wrong.y(), {});
  CHECK(std::isfinite(kernels.losses().host()[0]));
  CHECK(std::isnan(kernels.losses().host()[1]));
}
