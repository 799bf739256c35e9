#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const std::uint8_t* y, const std::int16_t* u, const std::int16_t* v, std::uint8_t* r, std::uint8_t* g,
             std::uint8_t* b) {
  std::size_t done = 0;
EXAMPLE
  static_cast<void>(done);
}
#endif
