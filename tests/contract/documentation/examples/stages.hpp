// ---- batch.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&, mr::rng&);

void show() {
EXAMPLE
}

// ---- bucket.hpp
#include <millrace/text.hpp>

struct example {
  mr::ragged<std::uint32_t> words;
  std::int32_t label, kind;
};
example prepare(const mr::record&);

void show() {
EXAMPLE 1
  auto kinds =
EXAMPLE 2
      ;
}

// ---- expand.hpp
#include <millrace/text.hpp>

struct clip {
  std::vector<float> frames;
  int label;
};
struct window {
  std::span<const float> frames;
  int label;
};
struct windows_of {
  using output = window;
  std::size_t frames;
  std::size_t max_outputs(const clip& c) const { return c.frames.size() / frames; }
  void push(const clip& c, auto& emit) const { emit(window{c.frames, c.label}); }
};
struct sentences_of {
  using output = std::string;
  void push(const mr::line& l, auto& emit) const { emit(std::string(l.text())); }
};

void show(const std::vector<clip>& clips) {
EXAMPLE
}

// ---- map.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&, mr::rng&);
example ask_a_server(example);

void show() {
EXAMPLE
}

// ---- mix_rows.hpp
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels, class Lambda>
void train_step(const Pixels&, const Labels&, const Labels&, const Lambda&);

void show() {
EXAMPLE
}

// ---- pack.hpp
#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(const mr::record&);

void show() {
EXAMPLE
}

// ---- shuffle.hpp
#include <millrace/shards.hpp>

void show() {
EXAMPLE
}

// ---- take.hpp
#include <millrace/text.hpp>

bool is_long(const mr::line&);

void show() {
EXAMPLE
}

// ---- to_device.hpp
#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(std::string_view);

void show(mr::device gpu, mr::stream_view my_stream) {
  auto batches = mr::lines("books.txt") | mr::map(tokenize) | mr::pack({}) | mr::batch<&mr::packed::ids>({.size = 32});
EXAMPLE
}
