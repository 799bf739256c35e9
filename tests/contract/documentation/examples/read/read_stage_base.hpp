#include <millrace/sources/shards.hpp>

EXAMPLE
