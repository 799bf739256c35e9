#include <millrace/image/jpeg_transcoder.hpp>

void example(const std::vector<std::vector<std::byte>>& files) {
EXAMPLE
}
