#include <millrace/pictures.hpp>

struct example {
  mr::picture pixels;
};
example decode(const mr::record&);
example crop(example, mr::rng&);

void show(mr::record r, std::uint64_t id, mr::scratch& memory, std::size_t& map_at_work) {
EXAMPLE
}
