#include <millrace/image/png.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/scalar.hpp>

EXAMPLE
