#include <vector>
struct clip { std::vector<float> samples; };
std::optional<clip> next_clip();
struct my_source {
  using item = clip;
  struct reader { std::optional<clip> next(); };
  explicit my_source(std::string folder);
  std::size_t shards() const;
  reader open(std::size_t shard, std::uint64_t epoch) const;
};
void flows(const std::vector<clip>& clips) {
EXAMPLE
}
