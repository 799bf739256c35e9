// ---- byte_marks.hpp
void example(const std::uint8_t* from) {
EXAMPLE
}

// ---- byte_tables.hpp
#if defined __x86_64__ || defined __aarch64__
void example(const std::uint8_t* entries, std::uint8_t* bytes) {
  using namespace mr::detail::word_layer;
EXAMPLE
}
#endif

// ---- crc_lanes.hpp
#include <millrace/simd/cpu_features.hpp>
#if defined __x86_64__ || defined __aarch64__
void example(std::span<const std::byte> data, std::uint32_t state) {
EXAMPLE
}
#endif

// ---- points.hpp
#ifdef __aarch64__
void example() {
EXAMPLE
}
#endif

// ---- stream_copy.hpp
#include <vector>
void example(std::byte* slot, std::size_t offset, const std::vector<std::byte>& row) {
EXAMPLE
}

// ---- words.hpp
// block 1 is the list of includes of a kernel
