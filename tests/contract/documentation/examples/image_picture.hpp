// ---- normalized_picture.hpp
#include <millrace/item/record.hpp>
#include <millrace/item/tensor/scalar.hpp>
EXAMPLE 1
void show(const mr::record& r, mr::rng& rng) {
EXAMPLE 2
}

// ---- padded_picture.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::detail::batch_of<&example::pixels, &example::size>& b) {
EXAMPLE 2
}

// ---- picture.hpp
#include <millrace/item/record.hpp>

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- ragged_picture.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::detail::batch_of<&example::pixels>& b) {
EXAMPLE 2
}

// ---- rgba_picture.hpp
#include <millrace/image/png/png.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/tensor/scalar.hpp>

EXAMPLE
