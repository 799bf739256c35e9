#include <millrace/base/error.hpp>
void open(std::size_t shard);
void fail(const std::exception_ptr&);
void example(std::size_t shard) {
EXAMPLE
}
