#include <millrace/image/label_map.hpp>
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
std::pair<float, mr::tensor_view<const float, 2>> train_step(mr::batch_of<&example::pixels, &example::label>& b);
void training(mr::log& out) {
  mr::session run{mr::shards("train.tar") | mr::map(prepare) |
                  mr::batch<&example::pixels, &example::label>({.size = 256})};
EXAMPLE
}
