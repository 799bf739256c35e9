// ---- label_map.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::detail::batch_of<&example::pixels, &example::classes>& b) {
EXAMPLE 2
}

// ---- label_source.hpp
#include <millrace/item/scratch.hpp>

void example(const mr::bytes& field, mr::scratch& scratch) {
EXAMPLE
}

// ---- png_labels.hpp
#include <millrace/image/labels/label_source.hpp>
void example(const mr::bytes& field, mr::scratch& scratch) {
EXAMPLE
}
