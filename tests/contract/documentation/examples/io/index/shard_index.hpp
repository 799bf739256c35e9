#include <millrace/io/index/tar_index_scan.hpp>
void example(mr::byte_source& source, mr::block_pool& pool) {
EXAMPLE
}
