#include <millrace/image/label_source.hpp>
void example(const mr::bytes& field, mr::scratch& scratch) {
EXAMPLE
}
