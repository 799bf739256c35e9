// The README's mix: 294 photos at seven tenths and 50 drawings at three; ended after five steps and gone on with.
#include "snippet.hpp"

#include <cstdio>

struct enough {};

struct model {
  std::vector<std::int32_t> labels{};
  std::size_t max_steps = ~std::size_t{0};
  std::string position{};

  void step(mr::tensor_view<const std::int32_t, 1> some, mr::tensor_view<const float, 1> weights, std::string behind) {
    int drawings = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      labels.push_back(some[i]);
      if ((some[i] >= 1'000) != (weights[i] == 0.5F)) std::abort();
      drawings += some[i] >= 1'000 ? 1 : 0;
    }
    if (drawings != 3) std::abort();
    position = std::move(behind);
    if (--max_steps == 0) throw enough();
  }
};

int main() {
  mr::shard_writer photos({.pattern = "photos-%03d.tar", .max_samples = 2});
  for (int i = 0; i < 2 * 147; ++i) photos.write(std::to_string(i), {{"cls", std::to_string(i)}});
  photos.close();
  mr::shard_writer drawings({.pattern = "drawings-%d.tar", .max_samples = 5});
  for (int i = 1'000; i < 1'050; ++i) drawings.write(std::to_string(i), {{"id", std::to_string(i)}});
  drawings.close();
  model whole, begun{.max_steps = 5};
  train(whole, {});
  try {
    train(begun, {});
  } catch (const enough&) {
  }
  model resumed{.labels = begun.labels};
  train(resumed, begun.position);
  std::printf("%zu labels, %zu after the resume\n", whole.labels.size(), resumed.labels.size() - begun.labels.size());
  return whole.labels.size() == 840 && resumed.labels == whole.labels ? 0 : 1;
}
