#include <millrace/item/scalar.hpp>
EXAMPLE
