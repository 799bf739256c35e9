#include <vector>
void example(std::uint64_t limit_bytes, const std::vector<std::string>& names,
             const std::vector<std::uint64_t>& blocks) {
EXAMPLE
}
