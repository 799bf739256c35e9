#include <millrace/shards.hpp>
// block 1 is the program with its storage
EXAMPLE 1
