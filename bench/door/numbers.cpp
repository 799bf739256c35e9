// The module of door.py, which compiles it.
#include "numbers.hpp"

#include <millrace/adapt/python.hpp>

namespace {

struct options {
  std::size_t batch = 4;
};

}   // namespace

PyMODINIT_FUNC PyInit_numbers() {
  const auto flow = [](const options& o) { return bench::numbers(o.batch); };
  return millrace::python::module("numbers", millrace::python::loader<&options::batch>("numbers", flow));
}
