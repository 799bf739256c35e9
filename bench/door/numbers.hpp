// The flow of `bench door`, whose samples cost nearly nothing: door.cpp iterates over it in C++, numbers.cpp opens it
// to Python.
//
//   mr::session run{bench::numbers(4), {.epochs = mr::endless}};
#pragma once

#include <millrace/millrace.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace bench {

struct number {
  std::array<float, 4> x;
  std::int64_t label;
};

inline auto numbers(std::size_t batch) {
  std::vector<number> all(4'096);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].label = static_cast<std::int64_t>(i);
  return millrace::from(std::move(all)) | millrace::batch<&number::x, &number::label>({.size = batch}) |
         millrace::prefetch({.batches = 8});
}

}   // namespace bench
