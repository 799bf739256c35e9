// Millrace in a CUDA trainer: the same kernels and stream, first with the usual data loading of small trainers, then
// with Millrace. The loops are train_before() and train_after() in cuda_trainer_loops.hpp.
//
//   cuda_trainer            # prints both losses and both times; exit status 1 if the losses differ by more than 1e-4
//   cuda_trainer --host     # the same without a GPU: the host runs the kernels, to check their arithmetic
//
// Without a GPU it prints one line and exits with status 77. Without a shuffle, both loops use the same batches.
#include "command_line.hpp"
#include "cuda_step.hpp"
#include "cuda_trainer_loops.hpp"
#include "shapes.hpp"

#include <millrace/millrace.hpp>

#include <tbb/parallel_for.h>

#include <chrono>
#include <cmath>

namespace mr = millrace;

namespace {

struct settings {
  std::size_t samples = 1280, epochs = 5;
  bool on_host = false;

  // The network uses the current GPU, and this program never changes that.
  trainer_settings loop() const {
    return {.epochs = epochs, .device = on_host ? mr::host_device() : mr::cuda_device(0)};
  }
  two_layers_options network() const {
    return {.rows = trainer_settings::rows, .pixels = trainer_settings::row_pixels, .on_host = on_host};
  }
};

struct outcome {
  float loss;
  double seconds;
};

template <class Train>
outcome timed(const Train& train, const std::vector<trainer_sample>& samples, const settings& s) {
  two_layers net(s.network());
  const auto start = std::chrono::steady_clock::now();
  const float loss = train(net, samples, s.loop());
  return {loss, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

void run(command_line& args) {
  settings s;
  s.samples = args.number("--samples", s.samples);
  s.epochs = args.number("--epochs", s.epochs);
  s.on_host = args.flag("--host");
  if (!args.rest().empty()) args.refuse("expected options only");
  if (s.samples < trainer_settings::rows || s.epochs == 0)
    args.refuse("expected at least one batch of 64 samples and one epoch");

  std::vector<trainer_sample> samples(s.samples);
  tbb::parallel_for(std::size_t{0}, s.samples, [&](std::size_t i) {
    auto shape = make_shape({.seed = 1, .index = i});
    samples[i] = {.file = std::move(shape.jpeg), .label = shape.label};
  });
  settings first = s;
  first.epochs = 1;
  if (!s.on_host) timed(train_before<two_layers>, samples, first);   // the first use of a GPU loads its code
  const outcome before = timed(train_before<two_layers>, samples, s),
                after = timed(train_after<two_layers>, samples, s);
  const double difference = std::abs(static_cast<double>(before.loss) - static_cast<double>(after.loss));
  std::printf("before: loss %.6f, %.3f s; after: loss %.6f, %.3f s\n", static_cast<double>(before.loss), before.seconds,
              static_cast<double>(after.loss), after.seconds);
  if (!(difference <= 1e-4)) throw mr::data_error("the two losses differ", "Report this as a bug");
}

bool wants_gpu(int argc, char** argv) {
  return std::none_of(argv + 1, argv + argc,
                      [](const char* a) { return std::string_view(a) == "--host" || std::string_view(a) == "--help"; });
}

}   // namespace

int main(int argc, char** argv) {
  const char* why = nullptr;
  if (wants_gpu(argc, argv) && !gpu_is_there(why)) {
    std::printf("skipped: this machine has no GPU (%s); cuda_trainer --host runs the same kernels without one\n", why);
    return 77;
  }
  return run_program({argc, argv, "usage: cuda_trainer [--samples N] [--epochs N] [--host]"}, run);
}
