// Millrace in a LibTorch trainer: the same network and the same step, first with the usual data loading of such
// trainers, then with Millrace. The loops train_before() and train_after() are between the two lines of dashes.
//
//   torch_trainer              # prints both losses; exit status 1 if they differ by more than 1e-6
//   torch_trainer --check N    # checks tensors that outlive their batches over N steps (torch_checks.hpp)
//
// Without a shuffle, both loops use the same batches. If LibTorch and Millrace have a GPU, everything runs there.
#include "command_line.hpp"
#include "shapes.hpp"
#include "torch_checks.hpp"

#include <millrace/adapt/torch.hpp>
#include <millrace/millrace.hpp>

#include <torch/cuda.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>

namespace mr = millrace;

namespace {

// The types, the network and the step of the trainer, which do not depend on Millrace.

constexpr std::int64_t trainer_side = 16, trainer_epochs = 3;
constexpr std::size_t trainer_rows = 20;

struct trainer_sample {
  std::vector<std::byte> file;
  std::int32_t label;
};

struct trainer_network : torch::nn::Module {
  torch::nn::Conv2d first{nullptr}, second{nullptr};
  torch::nn::Linear last{nullptr};

  trainer_network() {
    torch::manual_seed(1);
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
    second = register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).padding(1)));
    last = register_module("last", torch::nn::Linear(16 * 4 * 4, 10));
  }
  torch::Tensor forward(torch::Tensor x) {   // u8 [B, H, W, 3]
    x = x.permute({0, 3, 1, 2}).to(torch::kFloat).div_(255).sub_(0.5);
    x = torch::max_pool2d(torch::relu(first(x)), 2);
    x = torch::max_pool2d(torch::relu(second(x)), 2);
    return last(x.flatten(1));
  }
};

struct network_trainer {
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  trainer_network network;
  torch::optim::SGD optimizer{network.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};

  network_trainer() { network.to(device); }
  torch::Tensor step(const torch::Tensor& pixels, const torch::Tensor& labels) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nll_loss(network.forward(pixels).log_softmax(1), labels);
    loss.backward();
    optimizer.step();
    return loss.detach();
  }
};

mr::image trainer_decode(const std::vector<std::byte>& file) {
  return mr::jpeg(mr::bytes::owned(file)).resize(trainer_side, trainer_side).pixels();
}

// ---------------------------------------------------------------------------------------------------------------------
// Before: each sample becomes a tensor, the tensors are stacked and moved, and the loss is read in every step.

double train_before(const std::vector<trainer_sample>& samples) {
  network_trainer trainer;
  double loss = 0;
  for (std::int64_t epoch = 0; epoch < trainer_epochs; ++epoch)
    for (std::size_t start = 0; start + trainer_rows <= samples.size(); start += trainer_rows) {
      std::vector<torch::Tensor> pixels, labels;
      for (std::size_t i = start; i < start + trainer_rows; ++i) {
        mr::image picture = trainer_decode(samples[i].file);
        pixels.push_back(torch::from_blob(picture.data(), {trainer_side, trainer_side, 3}, torch::kByte).clone());
        labels.push_back(torch::scalar_tensor(samples[i].label, torch::kLong));
      }
      loss =
          trainer.step(torch::stack(pixels).to(trainer.device), torch::stack(labels).to(trainer.device)).item<double>();
    }
  return loss;
}

// After: workers decode into the memory of the batch, which the tensors share; the loss is read at the end.

struct prepared {
  mr::image pixels;
  std::int64_t label;   // the type for losses of torch
};

auto data_flow(const std::vector<trainer_sample>& samples, std::size_t rows, const mr::device& device) {
  return mr::from(samples) |
         mr::map([](const trainer_sample& s) { return prepared{trainer_decode(s.file), s.label}; }) |
         mr::batch<&prepared::pixels, &prepared::label>({.size = rows}) | mr::prefetch({.batches = 3}) |
         mr::to_device({.device = device});
}

double train_after(const std::vector<trainer_sample>& samples) {
  network_trainer trainer;
  torch::Tensor loss;
  const auto device = trainer.device.is_cuda() ? mr::best_device() : mr::host_device();
  mr::session run{data_flow(samples, trainer_rows, device), {.epochs = trainer_epochs, .notice = mr::quiet}};
  for (auto& b : run) {
    auto [pixels, labels] = mr::to_torch(std::move(b));
    loss = trainer.step(pixels.to(trainer.device), labels.to(trainer.device));   // no copy: they are on this device
  }
  return loss.item<double>();
}

// ---------------------------------------------------------------------------------------------------------------------

void run(command_line& args) {
  const auto steps = args.number<std::uint64_t>("--check", 0);
  if (!args.rest().empty()) args.refuse("expected options only");
  std::vector<trainer_sample> samples;
  for (std::uint64_t i = 0; i < 210; ++i) {   // the last ten do not fill a batch
    auto shape = make_shape({.seed = 1, .index = i});
    samples.push_back({.file = std::move(shape.jpeg), .label = shape.label});
  }
  if (steps > 0) {
    std::vector<prepared> expected;
    for (const trainer_sample& s : samples) expected.push_back({trainer_decode(s.file), s.label});
    check_torch_tensors(
        steps,
        [&](const mr::device& device, const mr::session_options& options) {
          return mr::session{data_flow(samples, 2, device), options};
        },
        [&](std::size_t n) -> const prepared& { return expected[n]; });
    return;
  }
  const double before = train_before(samples), after = train_after(samples);
  std::printf("final loss before %.9f, after %.9f, difference %.1e\n", before, after, std::abs(before - after));
  if (!(std::abs(before - after) <= 1e-6)) throw mr::data_error("the two losses differ", "Report this as a bug");
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, "usage: torch_trainer [--check STEPS]"}, run); }
