// The README's training log: 250 steps of 4 samples, so rows at steps 100, 200 and 250.
#include "snippet.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

struct sample {
  std::int32_t pixels, label;
};

struct model {
  std::vector<float> scores = std::vector<float>(4 * 3);

  double step(mr::tensor_view<const std::int32_t, 1> pixels, mr::tensor_view<const std::int32_t, 1> labels) {
    if (pixels.size() != labels.size()) std::abort();
    return 0.5;
  }
  mr::tensor_view<const float, 2> logits() const { return {.data = scores.data(), .shape = {4, 3}}; }
};

int main() {
  std::filesystem::create_directories("logs");
  mr::session run{mr::from(std::vector<int>(1000, 2)) | mr::map([](int n) { return sample{n, n}; }) |
                  mr::batch<&sample::pixels, &sample::label>({.size = 4})};
  model m;
  train(run, m);
  std::ifstream rows("train.jsonl");
  int count = 0;
  for (std::string line; std::getline(rows, line); ++count) std::printf("%s\n", line.c_str());
  return count == 3 ? 0 : 1;
}
