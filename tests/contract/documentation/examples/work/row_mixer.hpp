#include <millrace/item/sample.hpp>

struct example {
  mr::tensor<std::uint8_t, 3> pixels;
  std::int32_t label;
};
using columns = mr::detail::mixed_columns<&example::pixels, &example::label, &example::pixels, &example::label>;

void show(const mr::detail::pair_rule& rule, const mr::detail::batch_numbers& numbers, const columns& layout,
          mr::detail::batch_ring& ring, std::uint64_t batch, std::byte* base, mr::detail::sample<int> sample) {
EXAMPLE
}
