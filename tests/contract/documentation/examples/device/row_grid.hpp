#include <millrace/item/tensor.hpp>
template <class Batch>
void show(const mr::tensor_view<std::uint8_t, 4>& pixels, const Batch& b) {
EXAMPLE
  static_cast<void>(grid);
}
