// Keyword spotting: a linear classifier learns the sounds of make_tones from their energies in bands of frequency.
//
//   make_tones tones && train_audio tones        # trains on train-*.tar, and prints the accuracy on val-*.tar
#include "command_line.hpp"

#include <millrace/audio.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

namespace mr = millrace;
namespace {

constexpr std::size_t classes = 5, bands = 12, parts = 6, features = bands * parts + 1, window = 80;

struct example {
  mr::audio sound;   // f32 [frames]
  std::int32_t word;
};
example for_training(const mr::record& r, mr::rng& rng) {
  return {mr::wav(r["wav"]).mono().pad(0.9).random_crop(0.9, rng).random_gain(rng), r["cls"].as<std::int32_t>()};
}
example for_validation(const mr::record& r) {
  return {mr::wav(r["wav"]).mono().pad(0.9).center_crop(0.9), r["cls"].as<std::int32_t>()};
}

/// Logarithms of the energies in each band and part, relative to the complete sound: Goertzel's algorithm on windows.
std::array<double, features> features_of(std::span<const float> sound) {
  std::array<double, features> x{};
  double all = 1e-9;
  for (const float v : sound) all += v * v * window;
  for (std::size_t f = 0; f + 1 < features; ++f) {
    const double pitch = 150 + 250 * static_cast<double>(f % bands), turn = 2 * std::cos(6.2832 * pitch / 16'000);
    double energy = 0;
    for (std::size_t at = f / bands * sound.size() / parts, i = 0; i < sound.size() / parts / window; ++i) {
      double last = 0, before = 0;
      for (const float v : sound.subspan(at + i * window, window))
        before = std::exchange(last, v + turn * last - before);
      energy += last * last + before * before - turn * last * before;
    }
    x[f] = 2 + std::log10(1e-4 + energy / all);
  }
  x.back() = 1;
  return x;
}

using weight_table = std::array<std::array<double, features>, classes>;

/// Runs the classifier over all batches, with steps of this size towards the right answers. Returns the accuracy.
double run_over(auto flow, weight_table& weights, double step, std::uint64_t epochs) {
  std::size_t right = 0, count = 0;
  mr::session run{std::move(flow) | mr::batch<example>({.size = 20}), {.epochs = epochs, .notice = mr::quiet}};
  for (auto& [sounds, words] : run)
    for (std::size_t i = 0; i < words.size(); ++i, ++count) {
      const auto x = features_of(sounds[i].span());
      std::array<double, classes> p{};
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c)
        sum += p[c] = std::exp(std::inner_product(x.begin(), x.end(), weights[c].begin(), 0.0));
      right += std::max_element(p.begin(), p.end()) - p.begin() == words[i] ? 1 : 0;
      for (std::size_t c = 0; c < classes; ++c)
        for (std::size_t f = 0; f < features; ++f)
          weights[c][f] -= step * (p[c] / sum - (static_cast<std::int32_t>(c) == words[i] ? 1 : 0)) * x[f];
    }
  return static_cast<double>(right) / static_cast<double>(count);
}

void train(command_line& args) {
  const auto folders = args.rest();
  if (folders.size() != 1) args.refuse("expected one folder");
  weight_table weights{};
  auto training = mr::shards(folders[0] + "/train-*.tar", {.seed = 1}) | mr::shuffle({.window = 1'024});
  run_over(std::move(training) | mr::map(for_training), weights, 0.02, 8);
  const double accuracy = run_over(mr::shards(folders[0] + "/val-*.tar") | mr::map(for_validation), weights, 0, 1);
  std::printf("summary: accuracy=%.3f of 5 classes on new sounds\n", accuracy);
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, "usage: train_audio FOLDER"}, train); }
