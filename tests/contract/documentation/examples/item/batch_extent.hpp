#include <millrace/device/device.hpp>
#include <millrace/item/columns.hpp>
#include <millrace/item/ragged.hpp>

struct example {
  mr::ragged<std::uint32_t> words;
};

void show(const mr::detail::columns<&example::words>& layout, mr::device_backend& backend, std::byte* base,
          std::size_t rows, void* to) {
EXAMPLE
}
