#include <string>
#include <vector>
struct place {
  int find(const std::string& name) const;
};
void example(const std::vector<std::string>& names, std::vector<int>& found, const place* at) {
EXAMPLE
}
