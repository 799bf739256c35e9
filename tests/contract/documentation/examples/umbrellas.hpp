// ---- audio.hpp
struct example {
  mr::audio sound;
  std::int32_t word;
};
example prepare(const mr::record& r);
template <class A, class B>
void train_step(A& sound, B& word);

void show() {
EXAMPLE
}

// ---- mix_rows.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);

void show() {
  auto batches = mr::shards("train.tar") | mr::map(prepare)
               | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}

// ---- pictures.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& record, mr::rng& rng) {
EXAMPLE
}

// ---- report.hpp
#include <millrace/millrace.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- text.hpp
std::vector<std::uint32_t> tokenize(std::string_view text);
template <class Batch>
void train_step(Batch& batch);

void example() {
EXAMPLE
}

// ---- tuning.hpp
struct row {
  std::int32_t label;
};

void example(decltype(mr::from(std::vector<row>()) | mr::batch<&row::label>({.size = 16})) flow) {
EXAMPLE
}
