#include <millrace/pictures.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
std::vector<std::byte*> slots_of(std::size_t bytes);

void show(mr::detail::fused_maps<example> maps, mr::detail::executor& pool, mr::detail::batch_ring& ring) {
EXAMPLE
}
