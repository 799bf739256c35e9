// Two modules of clash.py from one file. Their types have the same names and different members, as in two files of a
// user that were copied from one example. The first one also decodes a JPEG, by its own libjpeg and without it.
#include <millrace/adapt/python.hpp>
#include <millrace/millrace.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct options {
#ifdef SECOND
  std::string word = "second";
#endif
  std::size_t batch = 4;
};

struct example {
#ifdef SECOND
  std::array<float, 3> values;
#endif
  std::int64_t label;
};

auto numbers(const options& o) {
  const auto flow = mr::from(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
#ifdef SECOND
  const float length = static_cast<float>(o.word.size());
  return flow | mr::map([length](std::int64_t n) { return example{{length, length, 7}, n + 100}; }) |
         mr::batch<&example::values, &example::label>({.size = o.batch});
#else
  return flow | mr::map([](std::int64_t n) { return example{n}; }) | mr::batch<&example::label>({.size = o.batch});
#endif
}

#ifdef SECOND
PyMODINIT_FUNC PyInit_second() {
  return mr::python::module("second", mr::python::loader<&options::word, &options::batch>("numbers", numbers));
}
#else
struct jpeg_file {
  std::string path;
};

struct decoded {
  mr::picture pixels;
};

auto photos(const jpeg_file& o) {
  return mr::from(std::vector{mr::picture_decoder::libjpeg, mr::picture_decoder::built_in}) |
         mr::map([o](mr::picture_decoder decoder) -> decoded {
           return {mr::jpeg(mr::read_file(o.path), {.decoder = decoder})};
         }) |
         mr::batch<&decoded::pixels>({.size = 2});
}

PyMODINIT_FUNC PyInit_first() {
  return mr::python::module("first", mr::python::loader<&options::batch>("numbers", numbers),
                            mr::python::loader<&jpeg_file::path>("photos", photos));
}
#endif
