// Millrace in an existing trainer: the same training loop, first with the loader of the trainer, then with Millrace.
// The loops train_before() and train_after() are between the two lines of dashes.
//
//   own_trainer      # prints both losses and their difference; exit status 1 if it is more than 1e-6
//
// The trainer keeps its types, its model and its order of samples. Without a shuffle, the losses are equal.
#include "command_line.hpp"
#include "shapes.hpp"

#include <millrace/millrace.hpp>

#include <cmath>

namespace mr = millrace;

namespace {

// The types and the model of the trainer, which do not depend on Millrace.

struct trainer_sample {
  std::vector<std::byte> file;
  std::int32_t label;
};

struct trainer_batch {
  const std::uint8_t* pixels;   // [rows, 16, 16, 3]
  const std::int32_t* labels;
  std::size_t rows;
};

constexpr std::size_t trainer_pixels = 16 * 16 * 3, trainer_classes = 10, trainer_rows = 20, trainer_epochs = 3;

/// Softmax regression by gradient descent.
class trainer_model {
 public:
  /// Returns the mean loss before the update.
  double step(const trainer_batch& b) {
    std::vector<double> gradient(weights_.size());
    double loss = 0;
    for (std::size_t i = 0; i < b.rows; ++i) {
      const std::uint8_t* x = b.pixels + i * trainer_pixels;
      std::array<double, trainer_classes> p{};
      for (std::size_t c = 0; c < trainer_classes; ++c)
        for (std::size_t d = 0; d < trainer_pixels; ++d)
          p[c] += weights_[c * trainer_pixels + d] * (x[d] / 255.0 - 0.5);
      double sum = 0;
      for (double& v : p) sum += v = std::exp(v);
      const auto label = static_cast<std::size_t>(b.labels[i]);
      loss -= std::log(p[label] / sum);
      for (std::size_t c = 0; c < trainer_classes; ++c)
        for (std::size_t d = 0; d < trainer_pixels; ++d)
          gradient[c * trainer_pixels + d] += (p[c] / sum - (c == label)) * (x[d] / 255.0 - 0.5);
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= 0.05 / static_cast<double>(b.rows) * gradient[i];
    return loss / static_cast<double>(b.rows);
  }

 private:
  std::vector<double> weights_ = std::vector<double>(trainer_classes * trainer_pixels);
};

mr::image trainer_decode(const std::vector<std::byte>& file) {
  return mr::jpeg(mr::bytes::owned(file)).resize(16, 16).pixels();
}

// ---------------------------------------------------------------------------------------------------------------------
// Before: the model waits while the loader fills a batch, one sample after the other.

double train_before(const std::vector<trainer_sample>& samples, trainer_model model) {
  double loss = 0;
  std::vector<std::uint8_t> pixels(trainer_rows * trainer_pixels);
  std::vector<std::int32_t> labels(trainer_rows);
  for (std::size_t epoch = 0; epoch < trainer_epochs; ++epoch)
    for (std::size_t start = 0; start + trainer_rows <= samples.size(); start += trainer_rows) {
      for (std::size_t i = 0; i < trainer_rows; ++i) {
        const mr::image image = trainer_decode(samples[start + i].file);
        std::ranges::copy(image.span(), pixels.begin() + static_cast<std::ptrdiff_t>(i * trainer_pixels));
        labels[i] = samples[start + i].label;
      }
      loss = model.step({.pixels = pixels.data(), .labels = labels.data(), .rows = trainer_rows});
    }
  return loss;
}

// After: the preparation of a sample, the columns of a batch, and the same call of step().

struct prepared {
  mr::image pixels;
  std::int32_t label;
};

double train_after(const std::vector<trainer_sample>& samples, trainer_model model) {
  double loss = 0;
  auto flow = mr::from(samples) |
              mr::map([](const trainer_sample& s) { return prepared{trainer_decode(s.file), s.label}; }) |
              mr::batch<&prepared::pixels, &prepared::label>({.size = trainer_rows});
  for (auto& b : mr::session{std::move(flow), {.epochs = trainer_epochs, .notice = mr::quiet}})
    loss = model.step(
        {.pixels = b.get<&prepared::pixels>().data, .labels = b.get<&prepared::label>().data, .rows = b.size()});
  return loss;
}

// ---------------------------------------------------------------------------------------------------------------------

void run(command_line& args) {
  if (!args.rest().empty()) args.refuse("own_trainer has no arguments");
  std::vector<trainer_sample> samples;
  for (std::uint64_t i = 0; i < 210; ++i) {   // the last ten do not fill a batch
    auto shape = make_shape({.seed = 1, .index = i});
    samples.push_back({.file = std::move(shape.jpeg), .label = shape.label});
  }
  const double before = train_before(samples, {}), after = train_after(samples, {});
  std::printf("final loss before %.9f, after %.9f, difference %.1e\n", before, after, std::abs(before - after));
  if (!(std::abs(before - after) <= 1e-6)) throw mr::data_error("the two losses differ", "Report this as a bug");
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, "usage: own_trainer"}, run); }
