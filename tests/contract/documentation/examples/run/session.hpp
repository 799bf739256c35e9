#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void train_step(mr::tensor_view<const std::uint8_t, 4>, mr::tensor_view<const std::int32_t, 1>, mr::stream_view);
void validate();
auto new_flow() {
  return mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
}
void one_loop() {
  auto flow = new_flow();
EXAMPLE 1
}
void loops(mr::session<decltype(new_flow())>& run) {
EXAMPLE 2
}
