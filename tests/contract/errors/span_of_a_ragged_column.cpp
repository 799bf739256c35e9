// error: a ragged column has padding: got words.span\(\), expected the span of a row
#include <millrace/item/tensor/tensor_view.hpp>
#include <millrace/item/tensor/tensor.hpp>

namespace mr = millrace;

std::size_t words_of(const mr::padded_view<const std::uint32_t, 2>& words) {
#if MISTAKE
  return words.span().size();   // wrong here
#else
  return words.values.span().size();
#endif
}
