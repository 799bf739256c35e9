#include <millrace/sources/indexed_shards.hpp>
#include <cstdio>
// In place of adapt/remote.hpp, whose libraries are not everywhere.
namespace mr {
using namespace millrace;
millrace::storage remote();
}
void example() {
EXAMPLE
}
