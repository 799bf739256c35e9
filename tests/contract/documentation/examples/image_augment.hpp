// ---- augment_draws.hpp
void example(mr::rng& random) {
EXAMPLE
}

// ---- basic_photometric_runner.hpp
void example(std::span<const mr::detail::photometric_op> ops, const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- photometric_plan.hpp
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng, std::span<std::uint8_t> row, mr::scratch& scratch) {
EXAMPLE
}

// ---- photometric_runner.hpp
#include <millrace/item/scratch.hpp>
void example(std::span<const mr::detail::photometric_op> ops, std::vector<std::uint8_t>& row, mr::scratch& scratch) {
EXAMPLE
}

// ---- timm_levels.hpp
void example(mr::rng& random) {
EXAMPLE
}
