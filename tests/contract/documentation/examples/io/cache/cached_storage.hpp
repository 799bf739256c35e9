#include <millrace/shards.hpp>
void example(std::shared_ptr<mr::storage_interface> below) {
EXAMPLE
}
