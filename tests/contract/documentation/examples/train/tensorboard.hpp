#include <millrace/train/log.hpp>
void logging(const std::vector<std::byte>& jpeg_bytes) {
EXAMPLE
}
