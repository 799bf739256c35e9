#include <iostream>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
row prepare(const mr::record& r);
void example(mr::scratch& s) {
  auto run = mr::session{mr::shards("train.tar") | mr::map(prepare) | mr::batch<&row::label>({.size = 256})};
EXAMPLE
}
