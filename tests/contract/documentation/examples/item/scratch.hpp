#include <millrace/item/bytes.hpp>

struct my_decoder {
  void decode(const mr::bytes& frame, std::span<std::uint8_t> row);
  bool repaired() const;
};
struct my_column {
  mr::bytes frame;
EXAMPLE
};
