#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(std::string_view);

void show(mr::device gpu, mr::stream_view my_stream) {
  auto batches = mr::lines("books.txt") | mr::map(tokenize) | mr::pack({}) | mr::batch<&mr::packed::ids>({.size = 32});
EXAMPLE
}
