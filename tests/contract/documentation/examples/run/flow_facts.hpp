#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void engine(const mr::session_options& options) {
  auto flow = mr::shards("train.tar") | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}
