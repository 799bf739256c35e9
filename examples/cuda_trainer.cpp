// Millrace in a CUDA trainer: the same kernels and the same stream, first fed as small trainers usually do it, then by
// Millrace. What changes stands between the two lines of dashes: train_before() and train_after().
//
//   cuda_trainer            # prints both losses and both times; exit status 1 if the losses are over 1e-4 apart
//   cuda_trainer --host     # the same without a GPU: the kernels' bodies one after the other on the host, a check only
//
// Without a GPU it says so in one line and ends with exit status 77. There is no shuffle, so both see the same batches.
#include "command_line.hpp"
#include "cuda_step.hpp"
#include "shapes.hpp"

#include <millrace/millrace.hpp>

#include <tbb/parallel_for.h>

#include <cmath>

namespace mr = millrace;

namespace {

struct their_sample {
  std::vector<std::byte> file;
  std::int32_t label;
};

constexpr std::size_t side = 32, row_pixels = side * side * 3, rows = 64;

struct settings {
  std::size_t samples = 1280, epochs = 5;
  bool on_host = false;

  two_layers_options network() const { return {.rows = rows, .pixels = row_pixels, .on_host = on_host}; }
};

mr::image their_decode(const std::vector<std::byte>& file) {
  return mr::jpeg(mr::bytes::borrowed(file)).resize(side, side).pixels();
}

// ---------------------------------------------------------------------------------------------------------------------
// Before: while a batch is decoded and copied the GPU has nothing to do, and each step is waited for.

float train_before(const std::vector<their_sample>& samples, const settings& s) {
  two_layers net(s.network());
  float loss = 0;
  std::vector<std::uint8_t> pixels(rows * row_pixels);
  std::vector<std::int32_t> labels(rows);
  for (std::size_t epoch = 0; epoch < s.epochs; ++epoch)
    for (std::size_t start = 0; start + rows <= samples.size(); start += rows) {
      for (std::size_t i = 0; i < rows; ++i) {
        const mr::image image = their_decode(samples[start + i].file);
        std::ranges::copy(image.span(), pixels.begin() + static_cast<std::ptrdiff_t>(i * row_pixels));
        labels[i] = samples[start + i].label;
      }
      net.upload(pixels.data(), labels.data());
      net.step(net.uploaded_pixels(), net.uploaded_labels(), net.stream());
      loss = net.read_loss();
    }
  return loss;
}

// After: workers decode into pinned slots and copies run in a stream of their own; the loop only launches kernels. The
// loss is read where it is wanted: at the end.

struct prepared {
  mr::image pixels;
  std::int32_t label;
};

float train_after(const std::vector<their_sample>& samples, const settings& s) {
  two_layers net(s.network());
  // The GPU that the network's own code uses: whatever is current, and this program never changes that.
  const mr::device device = s.on_host ? mr::host_device() : mr::cuda_device(0);
  auto flow = mr::from(samples)
            | mr::map([](const their_sample& one) { return prepared{their_decode(one.file), one.label}; })
            | mr::batch<&prepared::pixels, &prepared::label>({.size = rows})
            | mr::to_device({.device = device, .stream = net.stream()});
  mr::session run{std::move(flow), {.epochs = s.epochs, .announce = false}};
  for (auto& b : run) net.step(b.get<&prepared::pixels>(), b.get<&prepared::label>(), b.stream());
  return net.read_loss();
}

// ---------------------------------------------------------------------------------------------------------------------

struct outcome {
  float loss;
  double seconds;
};

template <class Train>
outcome timed(const Train& train, const std::vector<their_sample>& samples, const settings& s) {
  const std::int64_t start_ns = mr::read_clock_ns(CLOCK_MONOTONIC);
  const float loss = train(samples, s);
  return {loss, 1e-9 * static_cast<double>(mr::read_clock_ns(CLOCK_MONOTONIC) - start_ns)};
}

void run(command_line& args) {
  settings s;
  s.samples = args.number("--samples", s.samples);
  s.epochs = args.number("--epochs", s.epochs);
  s.on_host = args.flag("--host");
  if (!args.rest().empty()) args.refuse("all arguments have a name");
  if (s.samples < rows || s.epochs == 0) args.refuse("one batch of 64 samples and one epoch are the least");

  std::vector<their_sample> samples(s.samples);
  tbb::parallel_for(std::size_t{0}, s.samples, [&](std::size_t i) {
    auto shape = make_shape({.seed = 1, .index = i});
    samples[i] = {.file = std::move(shape.jpeg), .label = shape.label};
  });
  settings first = s;
  first.epochs = 1;
  if (!s.on_host) train_before(samples, first);   // the first use of a GPU loads its code
  const outcome before = timed(train_before, samples, s), after = timed(train_after, samples, s);
  const double difference = std::abs(static_cast<double>(before.loss) - static_cast<double>(after.loss));
  std::printf("before: loss %.6f, %.3f s; after: loss %.6f, %.3f s\n", static_cast<double>(before.loss), before.seconds,
              static_cast<double>(after.loss), after.seconds);
  if (!(difference <= 1e-4)) throw mr::data_error("the two losses differ", "They should be the same");
}

bool wants_gpu(int argc, char** argv) {
  return std::none_of(argv + 1, argv + argc, [](const char* a) {
    return std::string_view(a) == "--host" || std::string_view(a) == "--help";
  });
}

}  // namespace

int main(int argc, char** argv) {
  const char* why = nullptr;
  if (wants_gpu(argc, argv) && !gpu_is_there(why)) {
    std::printf("skipped: this machine has no GPU (%s); cuda_trainer --host runs the same kernels without one\n", why);
    return 77;
  }
  return run_program({argc, argv, "usage: cuda_trainer [--samples N] [--epochs N] [--host]"}, run);
}
