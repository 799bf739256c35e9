#include <millrace/millrace.hpp>
struct example { std::int32_t label; mr::tensor<float, 1> pixels; };
inline void train_step(const auto&, const auto&) {}
auto make_flow() {
  return mr::from(std::vector<std::int32_t>{1}) | mr::map([](std::int32_t i) { return example{i, {}}; }) |
         mr::batch<&example::pixels>({.size = 1});
}
void run() {
  auto flow = make_flow();
EXAMPLE
}
