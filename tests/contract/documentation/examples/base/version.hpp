#include <millrace/base/error.hpp>
EXAMPLE
