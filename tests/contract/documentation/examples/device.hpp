// ---- best_device.hpp
#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void example_of(std::vector<example>& examples) {
EXAMPLE
}

// ---- device.hpp
#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void example_of(std::vector<example>& examples) {
EXAMPLE
}

// ---- host.hpp
#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void step(mr::tensor_view<const float, 2> features, mr::stream_view stream);
void example_of(std::vector<example>& examples) {
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

void show() {
  mr::session run{mr::shards("train-{000..146}.tar") | mr::map(prepare)
                  | mr::batch<&example::pixels, &example::label>({.size = 256})
                  | mr::mixup<&example::pixels, &example::label>({.deferred = true})};
  for (auto& b : run) {
EXAMPLE
  }
}

// ---- node_memory.hpp
void fill(void*);
void example(const std::vector<unsigned>& near_cores) {
EXAMPLE
}

// ---- normalize.hpp
void example(mr::tensor_view<const std::uint8_t, 4> pixels, mr::tensor_view<float, 4> numbers) {
EXAMPLE
}

// ---- row_grid.hpp
#include <millrace/item/tensor/tensor.hpp>
template <class Batch>
void show(const mr::tensor_view<std::uint8_t, 4>& pixels, const Batch& b) {
EXAMPLE
  static_cast<void>(grid);
}

// ---- stream.hpp
#include <millrace/millrace.hpp>
using cudaStream_t = CUstream_st*;
struct item { float x; };
void example(cudaStream_t my_cuda_stream, mr::batch_of<&item::x>& b) {
EXAMPLE
}

// ---- view.hpp
EXAMPLE
