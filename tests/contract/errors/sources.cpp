#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/join.hpp>
#include <millrace/sources/mix.hpp>
#include <millrace/sources/shards.hpp>

#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(const mr::record& r) { return {r["cls"].as<int>()}; }

// case: field_as_a_string
// error: a field is bytes, not a std::string: write field.as<int>\(\)
int label_of(const mr::record& r) {
#if MISTAKE
  return std::stoi(r["cls"]);   // wrong here
#else
  return r["cls"].as<int>();
#endif
}

// case: field_as_a_type_of_text
// error: as<T>\(\) reads an integer, a float or a double. For text write field.text\(\)
std::string caption_of(const mr::record& r) {
#if MISTAKE
  return r["txt"].as<std::string>();   // wrong here
#else
  return std::string(r["txt"].text());
#endif
}

// case: from_a_generator_of_values
// error: from\(\) is given no source: expected a range, a callable that returns std::optional<item>, or a type
void train() {
#if MISTAKE
  auto source = [] { return 7; };
#else
  auto source = []() -> std::optional<int> { return std::nullopt; };
#endif
  auto flow = mr::from(source)   // wrong here
            | mr::map([](int n) { return example{n}; })
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: mix_items_differ
// error: the sources of mix\(\) end in items of different types
struct other {
  int number;
};
#if MISTAKE
other prepare_too(const mr::record& r) { return {r["cls"].as<int>()}; }
#else
example prepare_too(const mr::record& r) { return {r["cls"].as<int>()}; }
#endif

void train() {
  auto one = mr::weighted{mr::shards("a.tar") | mr::map(prepare), 0.7};
  auto other = mr::weighted{mr::shards("b.tar") | mr::map(prepare_too), 0.3};
  auto flow = mr::mix({.seed = 7}, one, other)   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: mix_of_a_batched_flow
// error: a source of mix\(\) may have only a shuffle, followed by maps
void train() {
  auto source = mr::shards("a.tar") | mr::map(prepare);
#if MISTAKE
  mr::session run{mr::mix({}, mr::weighted{source, 0.7},   // wrong here
                          mr::weighted{source | mr::batch<&example::number>({.size = 4}), 0.3})};
#else
  mr::session run{mr::mix({}, mr::weighted{source, 0.7}, mr::weighted{source, 0.3}) |
                  mr::batch<&example::number>({.size = 4})};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: mix_without_batch
// error: a session needs a flow of batches, and this one has no batch
void train() {
  auto mixed = mr::mix({}, mr::weighted{mr::shards("a.tar"), 0.7}, mr::weighted{mr::shards("b.tar")}) |
               mr::map(prepare);
#if MISTAKE
  mr::session run{std::move(mixed)};   // wrong here
#else
  mr::session run{std::move(mixed) | mr::batch<&example::number>({.size = 4})};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: mix_without_weights
// error: mix\(\) is given a source without its weight
void train() {
  auto one = mr::shards("a.tar"), other = mr::shards("b.tar");
#if MISTAKE
  auto mixed = mr::mix({.on_exhausted = mr::exhausted::repeat}, one, other);   // wrong here
#else
  auto mixed = mr::mix({.on_exhausted = mr::exhausted::repeat}, mr::weighted{one}, mr::weighted{other});
#endif
  mr::session run{mixed | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: join_of_flows_with_stages
// error: join\(\) joins sets of shards: write join\(shards\(...\), shards\(...\), options\). Put
void train() {
  auto images = mr::shards("a.tar");
#if MISTAKE
  auto joined = mr::join(images | mr::shuffle({.window = 8}), mr::shards("b.tar"));   // wrong here
#else
  auto joined = mr::join(images, mr::shards("b.tar")) | mr::shuffle({.window = 8});
#endif
  mr::session run{std::move(joined) | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: mix_of_a_vector_of_batched_flows
// error: a source of mix\(\) may have only a shuffle, followed by maps
void train() {
  auto source = mr::shards("a.tar") | mr::map(prepare);
#if MISTAKE
  std::vector many(3, mr::weighted{source | mr::batch<&example::number>({.size = 4})});
  mr::session run{mr::mix({}, many)};   // wrong here
#else
  std::vector many(3, mr::weighted{source});
  mr::session run{mr::mix({}, many) | mr::batch<&example::number>({.size = 4})};
#endif
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: mix_with_a_weight_as_text
// error: the weight of a source is neither a number nor a function double\(std::uint64_t position\)
void train() {
  auto one = mr::shards("a.tar");
#if MISTAKE
  const auto weight = [](const std::string& position) { return position.empty() ? 0.9 : 0.1; };
#else
  const auto weight = [](std::uint64_t position) { return position == 0 ? 0.9 : 0.1; };
#endif
  auto mixed = mr::mix({}, mr::weighted{one, weight});   // wrong here
  mr::session run{mixed | mr::map(prepare) | mr::batch<&example::number>({.size = 4})};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: shards_with_a_number
// error: the second argument of shards\(\) is its options
void train() {
  auto flow =
#if MISTAKE
      mr::shards("a.tar", 7)   // wrong here
#else
      mr::shards("a.tar", {.seed = 7})
#endif
      | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: storage_without_open
// error: a storage has open.name., which returns a pointer to a file with identity.. and read_at
struct memory_file {
  mr::file_identity identity() const { return {.size_bytes = 0}; }
  std::size_t read_at(std::uint64_t, std::span<std::byte>) { return 0; }
};
struct memory {
#if MISTAKE
  std::unique_ptr<memory_file> get(const std::string&) const { return nullptr; }
#else
  std::unique_ptr<memory_file> open(const std::string&) const { return nullptr; }
#endif
};

void train() {
  static_cast<void>(mr::shards("memory:a.tar", {.storage = memory()}));   // wrong here
}
