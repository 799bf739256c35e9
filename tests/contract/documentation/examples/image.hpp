// ---- any_picture.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng, const mr::picture_reader& webp) {
EXAMPLE
}
