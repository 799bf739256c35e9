// ---- autotuner.hpp
#include <millrace/millrace.hpp>
#include <millrace/tuning.hpp>
struct example { float number; };
void training(std::vector<example> examples) {
  auto flow = mr::from(std::move(examples)) | mr::batch<&example::number>({.size = 32});
EXAMPLE
}

// ---- tuning.hpp
#include <millrace/millrace.hpp>
struct example { float number; };
void training(std::vector<example> examples) {
  auto flow = mr::from(std::move(examples)) | mr::batch<&example::number>({.size = 32});
EXAMPLE
}
