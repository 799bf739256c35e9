#include <map>
#include <string_view>
void example(std::string_view text, std::map<std::string, std::uint64_t>& counts) {
EXAMPLE
}
