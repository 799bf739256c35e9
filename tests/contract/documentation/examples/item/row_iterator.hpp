#include <millrace/deliver/batch.hpp>

struct example {
  mr::image pixels;
};
void use(std::size_t height, const std::uint8_t* pixels);

void show(mr::detail::batch_of<&example::pixels>& b) {
EXAMPLE
}
