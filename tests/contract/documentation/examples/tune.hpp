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

// ---- tuning_search.hpp
void apply(const mr::detail::concurrency_counts& open);
void log(const std::string& text);
void after_a_window(const mr::detail::tuning_window& window) {
EXAMPLE
}
