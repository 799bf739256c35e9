#include <iostream>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
row prepare(const mr::record& r);
void step(const auto& batch);
void quarantine(const std::string& shard, const std::string& key);
void example() {
  auto run = mr::session{mr::shards("train.tar") | mr::map(prepare) | mr::batch<&row::label>({.size = 256})};
EXAMPLE
}
