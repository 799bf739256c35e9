#include <millrace/image/picture.hpp>

void show(const std::vector<float>& item, std::span<float> row, mr::scratch& scratch) {
EXAMPLE
}
