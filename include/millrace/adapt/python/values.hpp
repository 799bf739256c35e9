// Converts arguments of Python functions to C++, and C++ values to Python objects.
//
//   std::size_t rows = 0;
//   if (!mr::detail::python::read(object, rows, {"train", "batch"})) return nullptr;
//   // TypeError: train() argument 'batch' must be an integer, not str
//
// Types: bool, integers, floating-point numbers, std::string (also from a path), and std::vector and std::optional of
// these. Python's None is an empty std::optional.
// The namespace has hidden visibility. Therefore, two modules in one process do not share its symbols.
// Errors: the functions set a Python exception, and return false or null. Threads: the caller must own Python's global
// interpreter lock (GIL).
#pragma once

#include <millrace/base/version.hpp>

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

#include <concepts>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace [[gnu::visibility("hidden")]] python {

struct release_reference {
  void operator()(PyObject* object) const noexcept { Py_DECREF(object); }
};
/// Owns a reference to an object, or is null.
using reference = std::unique_ptr<PyObject, release_reference>;

/// Returns a new str. Bytes that are not UTF-8 become surrogates, as in the file names that Python returns.
inline PyObject* str_of(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}

/// Returns an attribute, or null after an error. The function interns the name. Otherwise, CPython's attribute cache
/// would store a new name object for each call.
inline reference attribute(PyObject* of, const char* name) {
  const reference interned(PyUnicode_InternFromString(name));
  return reference(interned ? PyObject_GetAttr(of, interned.get()) : nullptr);
}

/// A function and its argument, for errors.
struct argument {
  const char *function, *name;
};

/// Sets the TypeError for an argument with a wrong type. Returns false.
bool wrong_type(PyObject* from, const argument& of, const char* expected);
/// Reads an integer, and stores its value in `bits`. Allowed values are `min` to `max`. A negative value is stored
/// modulo 2^64.
bool read_integer(PyObject* from, unsigned long long& bits, long long min, unsigned long long max, const argument& of);
/// Returns a list of the elements of `from`. On failure, sets the TypeError and returns null.
reference list_of(PyObject* from, const argument& of);

template <class T>
concept is_optional = std::same_as<T, std::optional<typename T::value_type>>;

/// Converts `from` to `to`. On failure, sets a Python exception and returns false.
bool read(PyObject* from, bool& to, const argument& of);
bool read(PyObject* from, std::string& to, const argument& of);
template <class T>
bool read(PyObject* from, T& to, const argument& of) {
  if constexpr (std::is_integral_v<T>) {
    unsigned long long bits = 0;
    if (!read_integer(from, bits, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), of)) return false;
    to = static_cast<T>(bits);
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    to = static_cast<T>(PyFloat_AsDouble(from));
    return !PyErr_Occurred() || wrong_type(from, of, "a number");
  } else if constexpr (is_optional<T>) {
    to.reset();
    return from == Py_None || read(from, to.emplace(), of);
  } else {
    static_assert(
        requires(T v) { v.push_back({}); },   // a list
        "millrace: an option of a Python loader is a bool, a number, a std::string, or a std::vector or "
        "std::optional of these");
    to.clear();
    const reference items = list_of(from, of);
    for (Py_ssize_t i = 0; items && i < PyList_Size(items.get()); ++i)
      if (!read(PyList_GetItem(items.get(), i), to.emplace_back(), of)) return false;
    return items != nullptr;
  }
}

/// Returns a new Python object with this value.
template <class T>
PyObject* to_python(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return PyBool_FromLong(value);
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) return PyLong_FromLongLong(value);
  else if constexpr (std::is_integral_v<T>) return PyLong_FromUnsignedLongLong(value);
  else if constexpr (std::is_floating_point_v<T>) return PyFloat_FromDouble(static_cast<double>(value));
  else if constexpr (std::is_convertible_v<T, std::string_view>) return str_of(value);
  else if constexpr (is_optional<T>) return value ? to_python(*value) : Py_NewRef(Py_None);
  else {
    reference list(PyList_New(0));
    for (const typename T::value_type& item : value) {
      const reference one(list ? to_python(item) : nullptr);
      if (!one || PyList_Append(list.get(), one.get()) != 0) return nullptr;
    }
    return list.release();
  }
}

/// Returns the Python name of the type T. help() shows this name.
template <class T>
std::string annotation_of() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::is_integral_v<T>) return "int";
  else if constexpr (std::is_floating_point_v<T>) return "float";
  else if constexpr (std::is_same_v<T, std::string>) return "str";
  else if constexpr (is_optional<T>) return annotation_of<typename T::value_type>() + " | None";
  else return "list[" + annotation_of<typename T::value_type>() + "]";
}

}}}}   // namespace millrace::detail::python
