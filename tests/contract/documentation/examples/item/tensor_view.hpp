#include <millrace/deliver/batch.hpp>

struct example {
  mr::image pixels;
  std::int32_t label;
};
void launch(const std::uint8_t* pixels, std::size_t count, mr::stream_view stream);
void count(std::int32_t label);

void show(mr::detail::batch_of<&example::pixels, &example::label>& b) {
EXAMPLE
}
