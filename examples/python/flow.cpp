// Two flows for examples/python/train_torch.py: images for training and for validation, and their labels.
//
//   import millrace
//   photos = millrace.load("flow.cpp", name="photos")
//   loader = photos.train("train-{000..146}.tar", batch=256, seed=7)
#include <millrace/adapt/python.hpp>
#include <millrace/millrace.hpp>

namespace mr = millrace;

struct options {
  std::string shards;
  std::size_t batch = 256;
  std::size_t size = 224;
  std::uint64_t seed = 0;
};

struct example {
  mr::picture pixels;
  std::int64_t label;
};

auto train(const options& o) {
  const auto prepare = [size = o.size](const mr::record& r, mr::rng& rng) -> example {
    return {mr::jpeg(r["jpg"]).random_resized_crop(size, rng).random_flip(rng), r["cls"].as<std::int64_t>()};
  };
  return mr::shards(o.shards, {.seed = o.seed}) | mr::shuffle({.window = 8192}) | mr::map(prepare) |
         mr::batch<&example::pixels, &example::label>({.size = o.batch});
}

auto val(const options& o) {
  const auto prepare = [size = o.size](const mr::record& r) -> example {
    return {mr::jpeg(r["jpg"]).resize_shorter(size * 8 / 7).center_crop(size), r["cls"].as<std::int64_t>()};
  };
  return mr::shards(o.shards) | mr::map(prepare) |
         mr::batch<&example::pixels, &example::label>({.size = o.batch, .pad_last = true, .keys = true});
}

PyMODINIT_FUNC PyInit_photos() {
  using mr::python::loader;
  return mr::python::module(
      "photos",
      loader<&options::shards, &options::batch, &options::size, &options::seed>("train", train, "Augmented images."),
      loader<&options::shards, &options::batch, &options::size>("val", val, "Center crops, each once, with keys."));
}
