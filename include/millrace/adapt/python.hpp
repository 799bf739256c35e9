// Creates a Python module from flows. The module's functions create loaders, which deliver batches to a training loop
// in Python.
//
//   struct options { std::string shards; std::size_t batch = 256; std::uint64_t seed = 0; };
//   auto train(const options& o) {
//     return mr::shards(o.shards, {.seed = o.seed}) | mr::map(prepare) | mr::batch<example>({.size = o.batch});
//   }
//   PyMODINIT_FUNC PyInit_photos() {
//     using mr::python::loader;
//     return mr::python::module(
//         "photos", loader<&options::shards, &options::batch, &options::seed>("train", train, "Training batches."));
//   }
//
//   import millrace                                           # Python
//   photos = millrace.load("photos.cpp")                      # compiles the module, once
//   for pixels, label in photos.train("train-{000..146}.tar", batch=256, seed=7): ...
//
// Opt-in: needs CPython 3.10 or newer (python3-dev), and the package millrace in include/python. One module works with
// all these versions of CPython and with every version of PyTorch, because it uses only CPython's limited API and
// DLPack. Free-threaded builds of CPython have no limited API and are not supported.
// Arguments of a function: the members that are listed in loader<...>, with their names and default values. A member is
// a bool, a number, a std::string, or a std::vector or std::optional of these types. A string or vector argument is
// required if its default is empty and every argument before it is required. Batches are named tuples of tensors that
// share the memory of the batch. include/python describes epochs, resume, the lifetime of batches, and exceptions.
// Errors: errors of the session become Python exceptions, such as millrace.DataError. An exception has the same fields
// as the error.
// Threads: workers call the callables of a flow without Python's global lock. The callables must not call Python.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/adapt/python/loader.hpp>

#include <concepts>
#include <memory>

// clang-format off: separate namespaces
namespace millrace { inline namespace MILLRACE_ABI {

namespace [[gnu::visibility("hidden")]] python {
// clang-format on

/// Describes a function of the module. `Options` are the members that become arguments. `make` receives an object with
/// these members, and returns a flow. `name` and `doc` must exist until the process ends.
template <auto... Options, std::copy_constructible Make>
  requires(sizeof...(Options) > 0)
std::unique_ptr<detail::python::loader_entry> loader(const char* name, Make make, const char* doc = "") {
  return std::make_unique<detail::python::entry_of<Make, Options...>>(name, doc, std::move(make));
}

/// Creates the module. On failure, sets a Python exception and returns null. Call this function from PyInit_NAME.
template <std::same_as<std::unique_ptr<detail::python::loader_entry>>... Loaders>
PyObject* module(const char* name, Loaders... loaders) {
  const std::unique_ptr<detail::python::loader_entry> entries[] = {std::move(loaders)...};
  return detail::python::create_module(name, entries);
}

}   // namespace python

}}   // namespace millrace
