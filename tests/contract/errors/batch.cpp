#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/shuffle.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

// case: batch_before_map
// error: flow_item<int>.*column_of<example>.*Put map\(\) before batch
void train() {
#if MISTAKE
  auto flow = mr::from(numbers)
            | mr::batch<&example::number>({.size = 4})   // wrong here
            | mr::map(prepare);
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow), {.epochs = 2}};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: batch_called_batch_size
// error: batch has no option of this name: \.size is its number of rows
void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
#if MISTAKE
            | mr::batch<&example::number>({.batch_size = 4});   // wrong here
#else
            | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: batch_of_a_member_without_ampersand
// error: invalid use of non-static data member
// lines: 36
// errors: 5
void train() {
#if MISTAKE
  auto batch = mr::batch<example::number>({.size = 4});   // wrong here
#else
  auto batch = mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{mr::from(numbers) | mr::map(prepare) | batch};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: batch_of_a_number
// error: batch<...> got a bare number
void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
#if MISTAKE
            | mr::batch<&example::number>(4);   // wrong here
#else
            | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: batch_without_columns
// error: batch<> has no columns
void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
#if MISTAKE
            | mr::batch<>({.size = 4});   // wrong here
#else
            | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_after_batch
// error: this stage follows batch: only mix_rows, prefetch and to_device may follow batch
void train() {
#if MISTAKE
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4})
            | mr::map(prepare);   // wrong here
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: prefetch_of_a_number
// error: prefetch got a bare number
void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4})
#if MISTAKE
            | mr::prefetch(4);   // wrong here
#else
            | mr::prefetch({.batches = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: shuffle_called_buffer_size
// error: shuffle has no option of this name: the range in which it moves samples is \.window
void train() {
#if MISTAKE
  auto flow = mr::from(numbers) | mr::shuffle({.buffer_size = 8}) | mr::map(prepare);   // wrong here
#else
  auto flow = mr::from(numbers) | mr::shuffle({.window = 8}) | mr::shuffle({}) | mr::map(prepare);
#endif
  mr::session run{std::move(flow) | mr::batch<&example::number>({.size = 4}), {}};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: shuffle_after_batch
// error: only mix_rows, prefetch and to_device may follow batch
void train() {
#if MISTAKE
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4})
            | mr::shuffle({.window = 16});   // wrong here
#else
  auto flow = mr::from(numbers)
            | mr::shuffle({.window = 16})
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: shuffle_of_a_number
// error: shuffle got a bare number
void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
#if MISTAKE
            | mr::shuffle(8)   // wrong here
#else
            | mr::shuffle({.window = 8})
#endif
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: to_device_without_batch
// error: mix_rows, prefetch and to_device have no batch before them
void train() {
#if MISTAKE
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::to_device();   // wrong here
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4}) | mr::to_device();
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: batch_of_unlisted_members
// error: batch<T> needs an aggregate with 1 to 16 members
struct with_array {
  int number[3];
};
void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
#if MISTAKE
            | mr::batch<with_array>({.size = 4});   // wrong here
#else
            | mr::batch<example>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.columns());
}
