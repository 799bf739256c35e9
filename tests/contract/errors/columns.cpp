#include <millrace/image/picture/picture.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/item/tensor/tensor.hpp>
#include <millrace/item/tensor/tensor_view.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/pack.hpp>

#include <array>
#include <string>

namespace mr = millrace;

const std::vector<int> numbers(100, 3);

// case: bucket_without_length
// error: bucket<...> names a column without a length: expected a ragged column, or an integer that contains the length
struct example {
  float weight;
  std::uint32_t frames;
};
example weigh(int n) { return {1.0F, static_cast<std::uint32_t>(n)}; }

void train() {
#if MISTAKE
  auto by_length = mr::bucket<&example::weight>({.boundaries = {16, 64}, .tokens = 1024});
#else
  auto by_length = mr::bucket<&example::frames>({.boundaries = {16, 64}, .tokens = 1024});
#endif
  auto flow = mr::from(numbers)
            | mr::map(weigh)
            | by_length   // wrong here
            | mr::batch<&example::weight>({.size = 64});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::weight>());
}

// case: column_is_a_string
// error: a column of batch<...> is text: rows are numbers
struct example {
  int number;
  std::string name;
};
example prepare(int n) { return {n, "x"}; }

#if MISTAKE
constexpr auto column = &example::name;
#else
constexpr auto column = &example::number;
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<column>({.size = 4})   // wrong here
            | mr::to_device();
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<column>());
}

// case: column_is_an_array_of_texts
// error: a column of batch<...> is an array whose elements are not columns
struct example {
  std::array<std::string, 2> captions;
  std::array<mr::picture, 2> views;
};
example prepare(const mr::record& r) {
  const mr::picture p = mr::jpeg(r["jpg"]);
  return {{std::string(r["a"].text()), std::string(r["b"].text())}, {p.resize(96, 96), p.flip().resize(96, 96)}};
}

#if MISTAKE
constexpr auto column = &example::captions;
#else
constexpr auto column = &example::views;
#endif

void train() {
  auto flow = mr::shards("train-{000..146}.tar")
            | mr::map(prepare)
            | mr::batch<column>({.size = 4});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<column>());
}

// case: column_is_an_enum
// error: a column of batch<...> is an enum: rows are numbers
enum class kind { cat, dog };
#if MISTAKE
struct example { kind label; };
#else
struct example { std::int32_t label; };
#endif

void train() {
  auto flow = mr::from(numbers) | mr::map([](int n) { return example{static_cast<decltype(example::label)>(n % 2)}; })
            | mr::batch<&example::label>({.size = 4});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::label>());
}

// case: column_of_another_type
// error: flow_item<example>.*column_of<other>.*batch<...> names a member of a type that the flow does not produce
struct example {
  int number;
  float weight;
  std::string name;
};
example prepare(int n) { return {n, 1.0F, "x"}; }

struct other {
  int number;
};
#if MISTAKE
constexpr auto column = &other::number;
#else
constexpr auto column = &example::weight;
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::number, column>({.size = 4})   // wrong here
            | mr::to_device();
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<column>());
}

// case: column_of_vectors
// error: a column of batch<...> is a vector whose elements are not numbers
struct example {
#if MISTAKE
  std::vector<std::vector<float>> frames;
#else
  mr::ragged<float> frames;
#endif
};
example prepare(int n) {
#if MISTAKE
  return {{static_cast<std::size_t>(n), std::vector<float>(8)}};
#else
  return {mr::ragged(std::vector<float>(static_cast<std::size_t>(n)), {.max_length = 100})};
#endif
}

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::frames>({.size = 4});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::frames>());
}

// case: get_of_an_unlisted_column
// error: get<...> names a column that batch<...> does not list
struct labelled {
  int number;
  int label;
};
#if MISTAKE
constexpr auto column = &labelled::label;
#else
constexpr auto column = &labelled::number;
#endif

void train() {
  mr::session run{mr::from(numbers) | mr::map([](int n) { return labelled{n, n}; }) |
                  mr::batch<&labelled::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<column>());   // wrong here
}

// case: map_after_bucket
// error: this stage follows bucket: only batch<...> may follow bucket
struct example {
  mr::ragged<std::uint8_t> letters;
  std::int32_t label;
};
example spell(const std::string& text) {
  return {mr::ragged(std::vector<std::uint8_t>(text.begin(), text.end()), {.max_length = 64}), 1};
}
example with_label(example e) { return {e.letters, 2}; }
const std::vector<std::string> texts(100, "to be");

void train() {
  auto by_length = mr::bucket<&example::letters>({.boundaries = {16, 64}, .tokens = 1024});
#if MISTAKE
  auto flow = mr::from(texts) | mr::map(spell) | by_length | mr::map(with_label);   // wrong here
#else
  auto flow = mr::from(texts) | mr::map(spell) | mr::map(with_label) | by_length;
#endif
  mr::session run{std::move(flow) | mr::batch<&example::letters, &example::label>({.size = 64})};
  for (auto& b : run) static_cast<void>(b.get<&example::letters>());
}

// case: pack_of_text
// error: flow_item<.*string.*stage_input<.*span<.*the stage after '\|' does not accept the type
std::vector<std::uint32_t> tokenize(const std::string& text) { return {text.begin(), text.end()}; }
const std::vector<std::string> texts(100, "to be");

void train() {
#if MISTAKE
  auto documents = mr::from(texts);
#else
  auto documents = mr::from(texts) | mr::map(tokenize);
#endif
  auto flow = std::move(documents)
            | mr::pack({.length = 16})   // wrong here
            | mr::batch<&mr::packed::ids>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&mr::packed::ids>());
}

// case: pack_by_a_fraction
// error: the cost in pack\(\) is not a function from an item to an integer
#if MISTAKE
using cost_type = double;
#else
using cost_type = std::size_t;
#endif
struct batch_of_numbers {
  std::vector<int> numbers;
};
batch_of_numbers first_two(std::vector<int> all) {
  all.resize(2);
  return {std::move(all)};
}

void train() {
  const auto cost = [](const int& n) noexcept -> cost_type { return n == 0 ? 1 : 2; };
  auto stage = mr::pack_best_fit(cost, {.max_cost = 4});   // wrong here
  auto flow = mr::from(numbers) | std::move(stage) | mr::map(first_two)
            | mr::batch<&batch_of_numbers::numbers>({.size = 64});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&batch_of_numbers::numbers>());
}

// case: ragged_of_text
// error: a column of batch<...> is not a row of numbers
#if MISTAKE
using word = std::string;
#else
using word = std::uint32_t;
#endif
struct example {
  mr::ragged<word> words;
};
example prepare(int) { return {mr::ragged(std::vector<word>(3), {.max_length = 4})}; }

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
            | mr::batch<&example::words>({.size = 64});   // wrong here
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::words>());
}

// case: span_of_a_ragged_column
// error: a ragged column has padding: got words.span\(\), expected the span of a row
std::size_t words_of(const mr::padded_view<const std::uint32_t, 2>& words) {
#if MISTAKE
  return words.span().size();   // wrong here
#else
  return words.values.span().size();
#endif
}
