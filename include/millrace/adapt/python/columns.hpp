// Columns as Python's capsules. The class Column of the package adds the DLPack protocol to them.
//
//   PyObject* object = mr::detail::python::new_capsule<column_name>(std::make_unique<column>(std::move(c)));
//   PyObject* tensor = mr::detail::python::capsule_of<mr::dlpack_managed>(c, true);      // for torch.from_dlpack()
//
// Errors: null, with a Python exception. Threads: the caller owns Python's global lock.
#pragma once

#include <millrace/adapt/python/cpython.hpp>
#include <millrace/adapt/python/door.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
namespace python __attribute__((visibility("hidden"))) {

/// Returns a capsule that owns a C++ object.
template <const char* Name, class T>
PyObject* new_capsule(std::unique_ptr<T> object) {
  PyObject* const capsule = PyCapsule_New(object.get(), Name, [](PyObject* self) {
    delete static_cast<T*>(PyCapsule_GetPointer(self, Name));
  });
  if (capsule) object.release();
  return capsule;
}
inline constexpr char column_name[] = "millrace.column", session_name[] = "millrace.session";

/// Returns a capsule with the column as a tensor of Managed. With `as_signed`, u16, u32 and u64 become signed types
/// with the same bits, because torch cannot compute with these unsigned types.
template <class Managed>
PyObject* capsule_of(const column& c, bool as_signed) {
  static constexpr const char* name = std::is_same_v<Managed, dlpack_versioned> ? "dltensor_versioned" : "dltensor";
  dlpack_column tensor = c.tensor;
  if (as_signed && tensor.type.code == dlpack_uint && tensor.type.bits > 8) tensor.type.code = dlpack_int;
  std::shared_ptr<const void> owner = c.memory;
  if (!owner) owner = c.batch;
  Managed* const exported = export_dlpack<Managed>(tensor, std::move(owner));
  PyObject* const capsule = PyCapsule_New(exported, name, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, name)) return;   // a receiver owns the tensor, and has renamed the capsule
    auto* const unused = static_cast<Managed*>(PyCapsule_GetPointer(self, name));
    unused->deleter(unused);
  });
  if (!capsule) exported->deleter(exported);
  return capsule;
}

/// Returns a function of another signature as CPython stores it.
template <class Function>
PyCFunction as_function(Function* function) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// _dlpack(column, stream, versioned): a DLPack capsule. `stream` is a number of the protocol: 1 is the legacy default
/// stream, 2 that of the thread, -1 requests no synchronization.
inline PyObject* column_dlpack(PyObject*, PyObject* args) {
  PyObject* capsule = nullptr;
  long long stream = 1;
  int versioned = 0;
  if (!PyArg_ParseTuple(args, "OLp", &capsule, &stream, &versioned)) return nullptr;
  const auto* const c = static_cast<const column*>(PyCapsule_GetPointer(capsule, column_name));
  if (!c) return nullptr;
  try {
    if (c->tensor.device.device_type != dlpack_cpu && stream != -1)
      c->batch->used_on(stream == 1 ? stream_view() : stream_view(reinterpret_cast<CUstream_st*>(stream)));
    return versioned ? capsule_of<dlpack_versioned>(*c, false) : capsule_of<dlpack_managed>(*c, false);
  } catch (...) {
    return raise(std::current_exception());
  }
}

/// _describe(column): the shape and the DLPack device.
inline PyObject* column_description(PyObject*, PyObject* capsule) {
  const auto* const c = static_cast<const column*>(PyCapsule_GetPointer(capsule, column_name));
  const reference shape(c ? PyTuple_New(static_cast<Py_ssize_t>(c->tensor.rank)) : nullptr);
  for (std::size_t d = 0; shape && d < c->tensor.rank; ++d) {
    PyObject* const extent = PyLong_FromLongLong(c->tensor.shape[d]);
    if (!extent || PyTuple_SetItem(shape.get(), static_cast<Py_ssize_t>(d), extent) != 0) return nullptr;
  }
  if (!shape) return nullptr;
  return Py_BuildValue("O(ii)", shape.get(), c->tensor.device.device_type, c->tensor.device.device_id);
}

}}}}  // namespace millrace::detail::python
