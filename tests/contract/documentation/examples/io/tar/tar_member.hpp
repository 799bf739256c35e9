#include <millrace/io/tar/tar_reader.hpp>

void show(mr::detail::tar_reader& tar, std::vector<std::byte>& buffer) {
EXAMPLE
}
