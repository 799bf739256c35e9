#include <string>
void read(const std::string& shard);
void example() {
EXAMPLE
}
