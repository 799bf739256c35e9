#include <span>
#include <string>
void fail(const std::string& message);
void show(std::span<const std::byte> first_bytes, std::uint64_t size) {
EXAMPLE
}
