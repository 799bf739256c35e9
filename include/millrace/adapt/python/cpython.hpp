// Includes CPython's limited API, owns references to Python objects, and converts C++ exceptions to Python exceptions.
//
//   mr::detail::python::reference list(PyList_New(0));   // null: a Python exception is set
//   mr::detail::python::without_gil([&] { wait(); });    // other Python threads run during wait()
//   return mr::detail::python::raise(failure);           // sets millrace.DataError or another exception; returns null
//
// A module that uses only this API runs with every CPython from 3.10 on.
// The namespace has hidden visibility, so that two modules of one process share no symbols of it.
// Threads: the caller owns Python's global lock, except in the function passed to without_gil().
#pragma once

#include <millrace/base/error.hpp>

#if !__has_include(<Python.h>)
#error "millrace: Python.h is not installed: apt-get install python3-dev, or add the folder of Python's headers by -I"
#endif
#include <pyconfig.h>
#ifdef Py_GIL_DISABLED
#error "millrace: a free-threaded Python has no limited API and is not supported. Use the usual build of Python."
#endif
#ifndef Py_PYTHON_H
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#undef Py_LIMITED_API
#endif

#include <cxxabi.h>
#include <exception>
#include <memory>
#include <new>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
namespace [[gnu::visibility("hidden")]] python {

struct release_reference {
  void operator()(PyObject* object) const noexcept { Py_DECREF(object); }
};
/// Owns a reference to an object, or is null.
using reference = std::unique_ptr<PyObject, release_reference>;

/// Calls `act` without Python's global lock (the GIL). `act` must not throw. Do not call this function in a destructor:
/// after the end of the interpreter, acquiring the lock ends the calling thread by an exception.
template <class Act>
void without_gil(const Act& act) {
  PyThreadState* const thread = PyEval_SaveThread();
  act();
  PyEval_RestoreThread(thread);
}

/// Returns a new str. Bytes that are not UTF-8 become surrogates, like those in file names.
inline PyObject* str_of(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}
/// Sets an exception. Returns null, which the caller can return.
inline PyObject* raise(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  return nullptr;
}

/// Sets the exception millrace.NAME with the parts of `e`. If `cause` is not null, it becomes the __cause__.
inline void set_error(const char* name, const error& e, const char* cause = nullptr) {
  const reference package(PyImport_ImportModule("millrace"));
  const reference type(package ? PyObject_GetAttrString(package.get(), name) : nullptr);
  if (!type) return;
  const auto number = [](std::uint64_t n) {
    return n == error_location::unknown ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(n);
  };
  const error_location& where = e.where();
  const reference object(PyObject_CallFunction(type.get(), "NNNNNNNN", str_of(e.what()), str_of(e.message()),
                                               str_of(e.hint()), str_of(where.stage), str_of(where.shard),
                                               str_of(where.key), number(where.offset_bytes), number(where.position)));
  if (!object) return;
  if (cause) PyException_SetCause(object.get(), PyObject_CallFunction(PyExc_RuntimeError, "N", str_of(cause)));
  PyErr_SetObject(type.get(), object.get());
}

/// Sets the Python exception for `failure`. Returns null, which the caller can return. Allocates no C++ memory.
inline PyObject* raise(const std::exception_ptr& failure) {
  constexpr const char* unknown = "an unknown exception";
  try {
    std::rethrow_exception(failure);
  } catch (const setup_error& e) {
    set_error("SetupError", e);
  } catch (const late_data_error& e) {
    set_error("LateDataError", e);
  } catch (const data_error& e) {
    set_error("DataError", e);
  } catch (const io_error& e) {
    set_error("StorageError", e);
  } catch (const stage_error& e) {
    try {
      std::rethrow_exception(e.cause());
    } catch (const std::exception& cause) {
      set_error("StageError", e, cause.what());
    } catch (...) {
      set_error("StageError", e, unknown);
    }
  } catch (const conservation_error& e) {
    set_error("ConservationError", e);
  } catch (const error& e) {
    set_error("Error", e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, unknown);
  }
  return nullptr;
}

/// Returns the result of `act`. If `act` throws, sets the Python exception and returns null.
template <class Act>
PyObject* guarded(const Act& act) try {
  return act();
#ifdef __GLIBCXX__
} catch (const abi::__forced_unwind&) {   // the interpreter has ended, so CPython ends this thread
  throw;
#endif
} catch (...) {
  return raise(std::current_exception());
}

/// Wraps a function for CPython's tables of functions. `call` converts C++ exceptions to Python exceptions.
template <auto Function>
struct c_function;
template <class... Arguments, PyObject* (*Function)(Arguments...)>
struct c_function<Function> {
  static PyObject* call(Arguments... a) {
    return guarded([&] { return Function(a...); });
  }
};

}}}}  // namespace millrace::detail::python
