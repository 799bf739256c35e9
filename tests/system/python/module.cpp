// The module of the tests: the flows of flows.hpp.
#include "flows.hpp"

#include <millrace/adapt/python.hpp>

PyMODINIT_FUNC PyInit_flows() {
  using mr::python::loader;
  return mr::python::module(
      "flows",
      loader<&options::shards, &options::batch, &options::seed, &options::wide, &options::gate_at, &options::throw_at,
             &options::scale, &options::pad, &options::words, &options::gate>("numbers", numbers, "Numbered samples."),
      loader<&options::shards, &options::batch>("stream", stream));
}
