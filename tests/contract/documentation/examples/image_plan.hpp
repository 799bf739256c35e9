// ---- beta_draw.hpp
void example(mr::rng& random) {
EXAMPLE
  static_cast<void>(share);
}

// ---- exif_orientation.hpp
#include <cstddef>
#include <span>
void example(std::span<const std::byte> segment) {
EXAMPLE
}

// ---- geometry.hpp
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>

std::vector<mr::box> objects;
std::vector<mr::point> skeleton;
void swap_left_and_right(std::vector<mr::point>&);

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- pair_rule.hpp
void example(mr::rng& random) {
EXAMPLE
  static_cast<void>(how);
}

// ---- random_crop.hpp
void example(mr::rng& random) {
EXAMPLE
}

// ---- random_erase.hpp
void example(std::span<mr::f16> numbers, mr::rng& random) {
EXAMPLE
  static_cast<void>(as_torchvision);
}

// ---- row_operation.hpp
#include <cstdint>
#include <vector>
void example(std::vector<std::uint8_t>& pixels, mr::scratch& memory) {
EXAMPLE
}
