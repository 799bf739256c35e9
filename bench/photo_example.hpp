// The sample that benchmarks build from a photograph: a random crop of 224 x 224, flipped at random, and its label.
//
//   mr::shards(set.names, {.index = mr::index::off}) | mr::map(bench::prepare_photo)
//       | mr::batch<&bench::photo_example::pixels, &bench::photo_example::label>({.size = 256})
#pragma once

#include <millrace/millrace.hpp>

#include <cstdint>

namespace bench {

struct photo_example {
  millrace::picture pixels;
  std::int32_t label;
};

inline photo_example prepare_photo(const millrace::record& r, millrace::rng& random) {
  return {millrace::jpeg(r["jpg"]).random_resized_crop(224, random).random_flip(random), r["cls"].as<std::int32_t>()};
}

}   // namespace bench
