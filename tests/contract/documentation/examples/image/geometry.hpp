#include <millrace/image/label_map.hpp>
#include <millrace/image/picture.hpp>
#include <millrace/item/record.hpp>

std::vector<mr::box> objects;
std::vector<mr::point> skeleton;
void swap_left_and_right(std::vector<mr::point>&);

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}
