#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
using layout = mr::detail::columns<&example::pixels, &example::label>;
void engine(const mr::detail::pipeline_builder_options& options, mr::detail::batch_ring& batches) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}
