// ---- jpeg_symbol_counts.hpp
#include <millrace/image/jpeg_transcoder.hpp>

void example(const std::vector<std::vector<std::byte>>& files) {
EXAMPLE
}

// ---- package_merge.hpp
#include <vector>

void example() {
EXAMPLE
}
