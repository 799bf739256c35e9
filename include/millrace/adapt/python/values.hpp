// Converts arguments of Python functions to C++, and C++ values to Python objects.
//
//   std::size_t rows = 0;
//   if (!mr::detail::python::read(object, rows, {"train", "batch"})) return nullptr;
//   // TypeError: train() argument 'batch' must be an integer, not str
//
// Types: bool, integers, floating-point numbers, std::string (also from a path), and std::vector and std::optional of
// these. Python's None is an empty std::optional.
// Errors: the functions set a Python exception, and return false or null. Threads: the caller owns Python's global
// lock.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/adapt/python/cpython.hpp>

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
namespace [[gnu::visibility("hidden")]] python {

/// A function and its argument, for errors.
struct argument {
  const char *function, *name;
};

template <class T>
concept is_vector = std::same_as<T, std::vector<typename T::value_type>>;
template <class T>
concept is_optional = std::same_as<T, std::optional<typename T::value_type>>;

/// Sets the TypeError for an argument with a wrong type. Returns false.
inline bool wrong_type(PyObject* from, const argument& of, const char* expected) {
  PyErr_Clear();
  const reference name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(from)), "__name__"));
  if (name)
    PyErr_Format(PyExc_TypeError, "%s() argument '%s' must be %s, not %S", of.function, of.name, expected, name.get());
  return false;
}

template <class T>
bool read_integer(PyObject* from, T& to, const argument& of) {
  if (!PyIndex_Check(from) || PyBool_Check(from)) return wrong_type(from, of, "an integer");
  const reference number(PyNumber_Index(from));
  if (!number) return false;
  using wide = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
  wide value = 0;
  if constexpr (std::is_signed_v<T>) value = PyLong_AsLongLong(number.get());
  else value = PyLong_AsUnsignedLongLong(number.get());
  using limits = std::numeric_limits<T>;
  if (PyErr_Occurred() || value < limits::min() || value > limits::max()) {
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "%s() argument '%s' is out of range: got %S, expected %s to %s", of.function,
                 of.name, number.get(), std::to_string(limits::min()).c_str(), std::to_string(limits::max()).c_str());
    return false;
  }
  to = static_cast<T>(value);
  return true;
}

inline bool read_string(PyObject* from, std::string& to, const argument& of) {
  const reference path(PyOS_FSPath(from));   // str, bytes, or an object such as a pathlib.Path
  if (!path) return wrong_type(from, of, "str or a path");
  const reference bytes(PyBytes_Check(path.get()) ? Py_NewRef(path.get()) : PyUnicode_EncodeFSDefault(path.get()));
  if (!bytes) return false;
  to.assign(PyBytes_AsString(bytes.get()), static_cast<std::size_t>(PyBytes_Size(bytes.get())));
  return true;
}

/// Converts `from` to `to`. On failure, sets a Python exception and returns false.
template <class T>
bool read(PyObject* from, T& to, const argument& of) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!PyBool_Check(from)) return wrong_type(from, of, "bool");
    to = from == Py_True;
  } else if constexpr (std::is_integral_v<T>) {
    return read_integer(from, to, of);
  } else if constexpr (std::is_floating_point_v<T>) {
    const double value = PyFloat_AsDouble(from);
    if (PyErr_Occurred()) return wrong_type(from, of, "a number");
    to = static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return read_string(from, to, of);
  } else if constexpr (is_optional<T>) {
    to.reset();
    return from == Py_None || read(from, to.emplace(), of);
  } else {
    static_assert(is_vector<T>, "millrace: an option of a Python loader is a bool, a number, a std::string, or a "
                                "std::vector or std::optional of these");
    if (PyUnicode_Check(from) || PyBytes_Check(from)) return wrong_type(from, of, "a list");
    const reference list(PySequence_List(from));
    if (!list) return wrong_type(from, of, "a list");
    to.clear();
    for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) {
      typename T::value_type item{};
      if (!read(PyList_GetItem(list.get(), i), item, of)) return false;
      to.push_back(std::move(item));
    }
  }
  return true;
}

/// Returns a new Python object with this value.
template <class T>
PyObject* to_python(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return PyBool_FromLong(value);
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) return PyLong_FromLongLong(value);
  else if constexpr (std::is_integral_v<T>) return PyLong_FromUnsignedLongLong(value);
  else if constexpr (std::is_floating_point_v<T>) return PyFloat_FromDouble(static_cast<double>(value));
  else if constexpr (std::is_same_v<T, std::string>) return str_of(value);
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

/// Returns the name of the type for help().
template <class T>
std::string annotation_of() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::is_integral_v<T>) return "int";
  else if constexpr (std::is_floating_point_v<T>) return "float";
  else if constexpr (std::is_same_v<T, std::string>) return "str";
  else if constexpr (is_optional<T>) return annotation_of<typename T::value_type>() + " | None";
  else return "list[" + annotation_of<typename T::value_type>() + "]";
}

}}}}  // namespace millrace::detail::python
