#include <millrace/millrace.hpp>
struct example { float number; };
void training(std::vector<example> examples, mr::log& out) {
  auto flow = mr::from(std::move(examples)) | mr::batch<&example::number>({.size = 32});
EXAMPLE
}
