#include <millrace/item/record.hpp>
namespace millrace {
inline namespace MILLRACE_ABI {
inline constexpr picture_reader webp_pictures{};   // of adapt/webp.hpp
}
}
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}
