#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

#include <array>

namespace mr = millrace;

struct example {
  mr::tensor<float, 3> pixels;
  std::array<float, 4> sound;
  std::array<float, 10> dense;
  std::array<std::int64_t, 4> ids;
  int label;
};
example prepare(int n) { return {mr::tensor<float, 3>({3, 8, 8}), {}, {}, {}, n}; }
const std::vector<int> numbers(100, 3);

// case: loop_by_value_over_mixed_rows
// error: a batch cannot be copied: it is a lease on memory
void train() {
  mr::session run{mr::from(numbers) | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 64}) |
                  mr::mixup<&example::pixels, &example::label>()};
#if MISTAKE
  for (auto b : run) static_cast<void>(b.lambda());   // wrong here
#else
  for (auto& b : run) static_cast<void>(b.lambda());
#endif
}

// case: mix_rows_before_batch
// error: mix_rows, prefetch and to_device have no batch before them
void train() {
  auto batches = mr::batch<&example::pixels, &example::label>({.size = 64});
  auto mixes = mr::mixup<&example::pixels, &example::label>({.alpha = 0.8});
#if MISTAKE
  auto flow = mr::from(numbers) | mr::map(prepare) | mixes | batches;   // wrong here
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | batches | mixes;
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.row_mixes());
}

// case: mix_rows_of_an_unlisted_column
// error: mix_rows<...> names a column that batch<...> does not list
void train() {
#if MISTAKE
  auto batches = mr::batch<&example::sound>({.size = 64});
#else
  auto batches = mr::batch<&example::sound, &example::label>({.size = 64});
#endif
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | batches
            | mr::mixup<&example::sound, &example::label>()   // wrong here
            | mr::prefetch({.batches = 2});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.lambda());
}

// case: mix_rows_of_numbers
// error: the first column of mix_rows<...> has no rows that can be mixed: expected u8, f16, bf16 or f32
#if MISTAKE
constexpr auto rows = &example::ids;
#else
constexpr auto rows = &example::sound;
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::ids, &example::sound, &example::label>({.size = 64})
            | mr::mixup<rows, &example::label>();   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.label_b());
}

// case: mix_rows_twice
// error: rows are mixed twice: expected one mix_rows, mixup or cutmix
void train() {
  auto once = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::pixels, &example::label>({.size = 64})
            | mr::mixup<&example::pixels, &example::label>({.alpha = 0.8});
#if MISTAKE
  auto flow = once | mr::cutmix<&example::pixels, &example::label>();   // wrong here
#else
  auto flow = once;
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.columns());
}

// case: mix_rows_without_labels
// error: the second column of mix_rows<...> has no labels: expected a number for each row
#if MISTAKE
constexpr auto labels = &example::dense;
#else
constexpr auto labels = &example::label;
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::sound, &example::dense, &example::label>({.size = 64})
            | mr::mix_rows<&example::sound, labels>({.mixup_alpha = 1});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.label_a());
}
