// Creates a Python module from flows. Its functions create loaders. A training loop in Python iterates over the batches
// of a loader.
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
// every version of CPython and of PyTorch, because it uses only CPython's limited API and DLPack. Free-threaded builds
// of CPython have no limited API and are not supported.
// Arguments of a function: the members that are listed in loader<...>, with their names and default values. Their types
// are bool, numbers, std::string, and std::vector and std::optional of these. Strings and lists at the front of the
// list are required if their default is empty.
// Batches are named tuples of tensors that share the memory of the batch. include/python describes epochs, resume, the
// lifetime of batches, and exceptions.
// Errors: errors of the session become Python exceptions with the same fields, such as millrace.DataError.
// Threads: workers call the callables of a flow without Python's global lock. The callables must not call Python.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/adapt/python/cpython.hpp>
#include <millrace/adapt/python/opening.hpp>

#include <concepts>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI {

namespace [[gnu::visibility("hidden")]] python {

/// Describes a function of the module. `make` receives an object with the members `Options` and returns a flow. `name`
/// and `doc` must exist until the process ends.
template <auto... Options, std::copy_constructible Make>
  requires(sizeof...(Options) > 0)
detail::python::loader_entry loader(const char* name, Make make, const char* doc = "") {
  return detail::python::entry_of<Options...>(name, std::move(make), doc);
}

/// Creates the module. On failure, sets a Python exception and returns null. Call it from PyInit_NAME.
template <std::same_as<detail::python::loader_entry>... Loaders>
PyObject* module(const char* name, Loaders... loaders) {
  using namespace detail::python;
  const auto next = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(c_function<session_next>::call));
  static const PyMethodDef functions[] = {{"_next", next, METH_FASTCALL, nullptr},
                                          {"_close", c_function<session_close>::call, METH_VARARGS, nullptr},
                                          {"_get", c_function<session_get>::call, METH_VARARGS, nullptr},
                                          {"_dlpack", c_function<column_dlpack>::call, METH_VARARGS, nullptr},
                                          {"_describe", c_function<column_description>::call, METH_O, nullptr},
                                          {"_epoch_of", c_function<epoch_of>::call, METH_O, nullptr},
                                          {nullptr, nullptr, 0, nullptr}};
  static const PyMethodDef open{"open", c_function<open_session>::call, METH_VARARGS, nullptr};
  return guarded([&]() -> PyObject* {
    // The definition is never freed, because CPython refers to it until the process ends.
    auto* const definition = new PyModuleDef{PyModuleDef_HEAD_INIT, name, nullptr, -1,
                                             const_cast<PyMethodDef*>(functions), nullptr, nullptr, nullptr, nullptr};
    const reference package(PyImport_ImportModule("millrace.loader"));
    reference object(package ? PyModule_Create(definition) : nullptr);
    const auto add = [&](const loader_entry& l) {
      const reference parameters(l.parameters());
      const reference capsule(new_capsule<loader_name>(std::make_unique<loader_entry>(l)));
      const reference open_loader(capsule ? PyCFunction_NewEx(const_cast<PyMethodDef*>(&open), capsule.get(), nullptr)
                                          : nullptr);
      const reference function(open_loader && parameters
                                   ? PyObject_CallMethod(package.get(), "loader_function", "OssOO", object.get(),
                                                         l.name, l.doc, open_loader.get(), parameters.get())
                                   : nullptr);
      return function && PyObject_SetAttrString(object.get(), l.name, function.get()) == 0;
    };
    return object && (add(loaders) && ...) ? object.release() : nullptr;
  });
}

}  // namespace python

}}  // namespace millrace
