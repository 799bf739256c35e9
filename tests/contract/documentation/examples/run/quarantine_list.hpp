#include <millrace/shards.hpp>
void train_on(const mr::record& sample);
void example(const mr::record& sample, const std::string& all) {
EXAMPLE
}
