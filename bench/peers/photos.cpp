// The module of door.py, which compiles it: the loaders u8 and f16 with the flow of photos.hpp.
#include "photos.hpp"

#include <millrace/adapt/python.hpp>
#include <millrace/sources/shards.hpp>

#include <string>
#include <vector>

namespace mr = millrace;

namespace {

struct options {
  std::vector<std::string> shards;
  std::size_t batch = 256;
};

template <class Example>
auto photos(const options& o) {
  return bench::crops<Example>(mr::shards(o.shards, {.seed = 7, .index = mr::index::off}), o.batch);
}

}   // namespace

PyMODINIT_FUNC PyInit_photos() {
  using mr::python::loader;
  return mr::python::module("photos", loader<&options::shards, &options::batch>("u8", photos<bench::u8_crop>),
                            loader<&options::shards, &options::batch>("f16", photos<bench::f16_crop>));
}
