#include <millrace/item/record.hpp>

struct record_reader {
  std::optional<mr::record> next();
};

void show(record_reader& reader) {
EXAMPLE
}
