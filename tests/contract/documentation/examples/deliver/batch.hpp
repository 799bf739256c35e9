#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels>
void train_step(const Pixels&, const Labels&, mr::stream_view);

void show() {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})};
EXAMPLE
}
