// The flow of `bench peers`: peers.cpp iterates over it in C++, and photos.cpp opens it to Python.
//
//   mr::session run{bench::crops<bench::u8_crop>(mr::shards(names, {.seed = 7}), 256), {.epochs = mr::endless}};
#pragma once

#include <millrace/image/picture/normalized_picture.hpp>
#include <millrace/millrace.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace bench {

inline constexpr millrace::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
inline constexpr std::size_t crop_side = 224;

template <class Pixels>
struct labeled_crop {
  Pixels pixels;
  std::int32_t label;
};
using u8_crop = labeled_crop<millrace::picture>;
using f16_crop = labeled_crop<millrace::normalized_picture<millrace::f16>>;

template <class Example, class Source>
auto crops(Source source, std::size_t batch) {
  const auto prepare = [](const millrace::record& r, millrace::rng& random) -> Example {
    millrace::picture crop = millrace::jpeg(r["jpg"]).random_resized_crop(crop_side, random).random_flip(random);
    const auto label = r["cls"].as<std::int32_t>();
    if constexpr (std::is_same_v<Example, f16_crop>) return {{std::move(crop), imagenet}, label};
    else return {std::move(crop), label};
  };
  return std::move(source) | millrace::shuffle({.window = 512}) | millrace::map(prepare) |
         millrace::batch<&Example::pixels, &Example::label>({.size = batch});
}

}   // namespace bench
