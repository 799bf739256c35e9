#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);

void show() {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})
                  | mr::mixup<&example::pixels, &example::label>({.deferred = true})};
  for (auto& b : run) {
EXAMPLE
  }
}
