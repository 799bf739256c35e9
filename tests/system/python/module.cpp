// The module of the tests: the flows of flows.hpp, lists and images of different sizes, and allocations that fail.
#include "flows.hpp"

#include <millrace/adapt/python.hpp>
#include <millrace/pictures.hpp>

#include <cstdlib>
#include <new>

namespace {

// The module is loaded with RTLD_LOCAL, so that only its own code calls these operators.
thread_local long allocations_left = -1;   // < 0: no limit

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  return memory ? memory : throw std::bad_alloc();
}

struct sized {
  mr::picture_list images;     // row n: n % 3 images of 2 x 2, with the values 10 n, 10 n + 1, ...
  mr::ragged_picture largest;   // one row of n + 1 pixels
};

mr::picture gray(int width, int height, int value) {
  std::string file = "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  file.append(static_cast<std::size_t>(width * height), static_cast<char>(value));
  return mr::any_picture(mr::bytes::owned(file));
}

auto lists(const options& o) {
  return mr::lines(o.shards) | mr::map([](std::string_view line) -> sized {
           const int n = std::stoi(std::string(line));
           std::vector<mr::picture> all;
           for (int i = 0; i < n % 3; ++i) all.push_back(gray(2, 2, 10 * n + i));
           return {.images = {std::move(all), {.max_pictures = 2, .size = {.width = 2, .height = 2}}},
                   .largest = {gray(n + 1, 1, n), {.max = {.width = 20, .height = 1}}}};
         }) |
         mr::batch<&sized::images, &sized::largest>({.size = o.batch});
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t a) { return allocate(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

/// The next `count` allocations of this thread succeed, and the following ones fail. -1: all succeed.
extern "C" [[gnu::visibility("default")]] void allocations_that_succeed(long count) { allocations_left = count; }

PyMODINIT_FUNC PyInit_flows() {
  using mr::python::loader;
  return mr::python::module(
      "flows",
      loader<&options::shards, &options::batch, &options::seed, &options::wide, &options::gate_at, &options::throw_at,
             &options::scale, &options::pad, &options::words, &options::gate>("numbers", numbers, "Numbered samples."),
      loader<&options::shards, &options::batch>("stream", stream),
      loader<&options::shards, &options::batch>("lists", lists));
}
