#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

// case: feed_without_batch
// error: feed needs a flow of batches, and this one has no batch
void train() {
  int steps = 0;
#if MISTAKE
  mr::feed(mr::from(numbers) | mr::map(prepare), {}, [&](auto&) { ++steps; });   // wrong here
#else
  mr::feed(mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4}), {},
           [&](auto&) { ++steps; });
#endif
}

// case: loop_by_value
// error: a batch cannot be copied
void train() {
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
#if MISTAKE
  for (auto b : run) static_cast<void>(b.get<&example::number>());   // wrong here
#else
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
#endif
}

// case: session_by_equals_sign
// error: a session is created with '=' here
void train() {
  auto flow = mr::from(numbers) | mr::map([](int n) { return example{n}; }) | mr::batch<&example::number>({.size = 4});
#if MISTAKE
  mr::session run = flow;   // wrong here
#else
  mr::session run{std::move(flow)};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: session_called_num_workers
// error: a session has worker threads instead of processes\. Write \.threads
void train() {
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
#if MISTAKE
  mr::session run{std::move(flow), {.epochs = 2, .num_workers = 8}};   // wrong here
#else
  mr::session run{std::move(flow), {.epochs = 2, .threads = 8}};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: session_without_batch
// error: a session needs a flow of batches, and this one has no batch
void train() {
#if MISTAKE
  mr::session run{mr::from(numbers) | mr::map(prepare)};   // wrong here
#else
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: session_of_other_columns
// error: session<\.\.\.> and the batch of this flow name different columns
void train() {
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<example>({.size = 4});
#if MISTAKE
  mr::session<&example::number, &example::number> run{std::move(flow)};   // wrong here
#else
  mr::session<&example::number> run{std::move(flow)};
#endif
}

// case: loop_with_columns_after_a_mistake
// error: the callable in map\(\) returns void
void train() {
#if MISTAKE
  auto flow = mr::from(numbers) | mr::map([](int) {}) | mr::batch<example>({.size = 4});   // wrong here
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<example>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& [number] : run) static_cast<void>(number);
}
