// Definitions for values.hpp and loader.hpp: the functions of a module, for the Python package:
//
//   session = open(flow_options, session_options, deliver, False)
//   columns, keys, copied = _next(session, epoch, starts, copies, raw, stream, deliver)    # or None at the end
//   _get(session, "position"), _close(session, deliver), _epoch_of(position)
//   _dlpack(column, stream, versioned), _describe(column)
//
// open() and _next() wait without Python's global lock, and check for signals every 50 ms, so that Ctrl-C ends the
// wait. _next() can then be repeated without loss of a batch. open() starts the session on another thread, which
// destroys the session if the wait was ended. `deliver` receives the notices of the session, or is None.
#pragma once

#include <millrace/adapt/python/loader.hpp>
#include <millrace/adapt/python/sessions.hpp>
#include <millrace/base/error.hpp>
#include <millrace/item/world.hpp>

#include <chrono>
#include <cxxabi.h>
#include <exception>
#include <future>
#include <new>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace [[gnu::visibility("hidden")]] python {

MILLRACE_INLINE bool wrong_type(PyObject* from, const argument& of, const char* expected) {
  PyErr_Clear();
  const reference name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(from)), "__name__"));
  if (name)
    PyErr_Format(PyExc_TypeError, "%s() argument '%s' must be %s, not %S", of.function, of.name, expected, name.get());
  return false;
}

MILLRACE_INLINE bool read_integer(PyObject* from, unsigned long long& bits, long long min, unsigned long long max,
                                  const argument& of) {
  if (!PyIndex_Check(from) || PyBool_Check(from)) return wrong_type(from, of, "an integer");
  const reference number(PyNumber_Index(from));
  if (!number) return false;
  bool fits = false;
  if (min < 0) {
    const long long value = PyLong_AsLongLong(number.get());
    bits = static_cast<unsigned long long>(value);
    fits = value >= min && (value < 0 || bits <= max);
  } else {
    bits = PyLong_AsUnsignedLongLong(number.get());
    fits = bits <= max;
  }
  if (fits && !PyErr_Occurred()) return true;
  PyErr_Clear();
  PyErr_Format(PyExc_OverflowError, "%s() argument '%s' is out of range: got %S, expected %s to %s", of.function,
               of.name, number.get(), std::to_string(min).c_str(), std::to_string(max).c_str());
  return false;
}

MILLRACE_INLINE bool read_list(PyObject* from, void* list, bool (*add)(PyObject*, void*, const argument&),
                               const argument& of) {
  if (PyUnicode_Check(from) || PyBytes_Check(from)) return wrong_type(from, of, "a list");
  const reference items(PySequence_List(from));
  if (!items) return wrong_type(from, of, "a list");
  for (Py_ssize_t i = 0; i < PyList_Size(items.get()); ++i)
    if (!add(PyList_GetItem(items.get(), i), list, of)) return false;
  return true;
}

MILLRACE_INLINE bool read(PyObject* from, bool& to, const argument& of) {
  if (!PyBool_Check(from)) return wrong_type(from, of, "bool");
  to = from == Py_True;
  return true;
}

MILLRACE_INLINE bool read(PyObject* from, std::string& to, const argument& of) {
  const reference path(PyOS_FSPath(from));   // str, bytes, or an object such as a pathlib.Path
  if (!path) return wrong_type(from, of, "str or a path");
  const reference bytes(PyBytes_Check(path.get()) ? Py_NewRef(path.get()) : PyUnicode_EncodeFSDefault(path.get()));
  if (!bytes) return false;
  to.assign(PyBytes_AsString(bytes.get()), static_cast<std::size_t>(PyBytes_Size(bytes.get())));
  return true;
}

/// Sets the exception millrace.NAME with the parts of `e`, and of its `cause` unless it is null. Returns null.
MILLRACE_INLINE PyObject* set_error(const char* name, const error& e, const char* cause = nullptr) {
  const reference package(PyImport_ImportModule("millrace"));
  const reference type(package ? PyObject_GetAttrString(package.get(), name) : nullptr);
  if (!type) return nullptr;
  const auto number = [](std::uint64_t n) {
    return n == error_location::unknown ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(n);
  };
  const error_location& where = e.where();
  const reference object(PyObject_CallFunction(type.get(), "NNNNNNNN", str_of(e.what()), str_of(e.message()),
                                               str_of(e.hint()), str_of(where.stage), str_of(where.shard),
                                               str_of(where.key), number(where.offset_bytes), number(where.position)));
  if (object && cause)
    PyException_SetCause(object.get(), PyObject_CallFunction(PyExc_RuntimeError, "N", str_of(cause)));
  if (object) PyErr_SetObject(type.get(), object.get());
  return nullptr;
}

MILLRACE_INLINE const char* text_of(const std::exception_ptr& failure) try {
  std::rethrow_exception(failure);
} catch (const std::exception& e) {
  return e.what();
} catch (...) {
  return "an unknown exception";
}

/// Sets the Python exception for `failure`. Returns null, which the caller can return. Allocates no C++ memory.
MILLRACE_INLINE PyObject* raise(const std::exception_ptr& failure) try {
  std::rethrow_exception(failure);
} catch (const setup_error& e) {
  return set_error("SetupError", e);
} catch (const late_data_error& e) {
  return set_error("LateDataError", e);
} catch (const data_error& e) {
  return set_error("DataError", e);
} catch (const io_error& e) {
  return set_error("StorageError", e);
} catch (const stage_error& e) {
  return set_error("StageError", e, text_of(e.cause()));
} catch (const conservation_error& e) {
  return set_error("ConservationError", e);
} catch (const error& e) {
  return set_error("Error", e);
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
} catch (...) {
  return PyErr_Format(PyExc_RuntimeError, "%s", text_of(failure));
}

/// Returns the result of `Function`. If it throws, sets the Python exception and returns null.
template <auto Function, class... Arguments>
PyObject* guarded(Arguments... a) try {
  return Function(a...);
#ifdef __GLIBCXX__
} catch (const abi::__forced_unwind&) {   // the interpreter has ended, so CPython ends this thread
  throw;
#endif
} catch (...) {
  return raise(std::current_exception());
}

/// Returns a capsule that owns a C++ object.
template <const char* Name, class T>
PyObject* new_capsule(std::unique_ptr<T> object) {
  PyObject* const capsule = PyCapsule_New(
      object.get(), Name, [](PyObject* self) { delete static_cast<T*>(PyCapsule_GetPointer(self, Name)); });
  if (capsule) object.release();
  return capsule;
}
inline constexpr char column_name[] = "millrace.column", session_name[] = "millrace.session",
                      loader_name[] = "millrace.loader";

/// Returns a DLPack capsule with the column. If `as_signed` is true, u16, u32 and u64 become signed types with the same
/// bits, because torch cannot compute with these unsigned types.
template <class Managed>
PyObject* capsule_of(const column& c, bool as_signed) {
  static constexpr const char* name = std::is_same_v<Managed, dlpack_versioned> ? "dltensor_versioned" : "dltensor";
  dlpack_column tensor = c.tensor;
  if (as_signed && tensor.type.code == dlpack_uint && tensor.type.bits > 8) tensor.type.code = dlpack_int;
  Managed* const exported = export_dlpack<Managed>(tensor, c.owner);
  PyObject* const capsule = PyCapsule_New(exported, name, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, name)) return;   // a receiver owns the tensor, because it has renamed the capsule
    auto* const unused = static_cast<Managed*>(PyCapsule_GetPointer(self, name));
    unused->deleter(unused);
  });
  if (!capsule) exported->deleter(exported);
  return capsule;
}

/// Implements _dlpack(column, stream, versioned), which returns a DLPack capsule. `stream` is a number of the DLPack
/// protocol, such as 1 for the legacy default stream.
MILLRACE_INLINE PyObject* column_dlpack(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "_dlpack() has three arguments");
  const auto* const c = static_cast<const column*>(PyCapsule_GetPointer(args[0], column_name));
  long long stream = -1;
  if (!c || !read(args[1], stream, {"_dlpack", "stream"})) return nullptr;
  if (c->batch && stream != -1)
    c->batch->used_on(stream == 1 ? stream_view() : stream_view(reinterpret_cast<CUstream_st*>(stream)));
  return args[2] == Py_True ? capsule_of<dlpack_versioned>(*c, false) : capsule_of<dlpack_managed>(*c, false);
}

/// Implements _describe(column), which returns the extents, the DLPack device, and the type code, bits and address.
MILLRACE_INLINE PyObject* column_description(PyObject*, PyObject* capsule) {
  const auto* const c = static_cast<const column*>(PyCapsule_GetPointer(capsule, column_name));
  if (!c) return nullptr;
  const dlpack_column& t = c->tensor;
  return Py_BuildValue("N(ii)iiK", to_python(std::vector(t.shape.begin(), t.shape.begin() + t.rank)),
                       t.device.device_type, t.device.device_id, int{t.type.code}, int{t.type.bits},
                       static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(t.data)));
}

/// Passes the waiting notices to `deliver`.
MILLRACE_INLINE void deliver_notices(notice_queue& notices, PyObject* deliver) {
  constexpr const char* severities[] = {"info", "warning", "loss"};
  std::vector<notice> waiting;
  std::unique_lock lock(notices.mutex);
  waiting.swap(notices.notices);
  lock.unlock();
  for (const notice& n : waiting) {
    if (deliver == Py_None) continue;
    const reference result(PyObject_CallFunction(deliver, "ssN", text_of(n.kind),
                                                 severities[static_cast<std::size_t>(n.severity)], str_of(n.text)));
    if (!result) PyErr_WriteUnraisable(deliver);
  }
}

/// Returns the tuple (columns, keys or None, whether all columns are copies).
MILLRACE_INLINE PyObject* batch_tuple(running& s, bool raw) {
  const reference columns(PyTuple_New(static_cast<Py_ssize_t>(s.columns.size())));
  for (Py_ssize_t i = 0; column & c : s.columns) {
    // For versions of torch whose DLPack support lacks bool.
    const bool marked = raw && c.tensor.type.code == dlpack_bool;
    if (marked) c.tensor.type.code = dlpack_uint;
    PyObject* object = raw ? capsule_of<dlpack_managed>(c, true)
                           : new_capsule<column_name>(std::make_unique<column>(c));
    if (marked && object) object = Py_BuildValue("(N)", object);
    if (!columns || !object || PyTuple_SetItem(columns.get(), i++, object) != 0) return nullptr;
  }
  std::optional<std::vector<std::string>> keys;
  if (s.batch().has_keys()) keys.emplace(s.batch().keys().begin(), s.batch().keys().end());
  const reference list(to_python(keys));
  return columns && list ? PyTuple_Pack(3, columns.get(), list.get(), s.copied ? Py_True : Py_False) : nullptr;
}

/// Waits for the next batch and returns it. Returns null after an error, or if a signal handler raised an exception.
MILLRACE_INLINE PyObject* next_batch(running* s, request r, bool raw, PyObject* deliver) {
  for (outcome next = outcome::waits; next == outcome::waits;) {
    std::exception_ptr failure;
    without_gil([&]() noexcept {
      try {
        next = s->next(r);
      } catch (...) {
        failure = std::current_exception();
      }
    });
    deliver_notices(*s->notices, deliver);
    if (failure) return raise(failure);
    if (next == outcome::ends) return Py_NewRef(Py_None);
    if (next == outcome::waits && PyErr_CheckSignals() != 0) return nullptr;
  }
  reference batch(batch_tuple(*s, raw));
  if (batch) s->commit();
  return batch.release();
}

inline constexpr const char* busy = "millrace: another thread waits for a batch of this loader. Use one per thread.";

MILLRACE_INLINE running* session_of(PyObject* capsule) {
  return static_cast<running*>(PyCapsule_GetPointer(capsule, session_name));
}
MILLRACE_INLINE PyObject* session_next(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 7) return PyErr_Format(PyExc_TypeError, "_next() has seven arguments");
  running* const s = session_of(args[0]);
  request r{.starts = args[2] == Py_True, .copies = args[3] == Py_True};
  std::optional<std::uint64_t> stream;
  if (!s || !read(args[1], r.epoch, {"_next", "epoch"}) || !read(args[5], stream, {"_next", "stream"})) return nullptr;
  if (stream) r.stream = stream_view(reinterpret_cast<CUstream_st*>(*stream));
  if (!s->run) return PyErr_Format(PyExc_ValueError, closed);
  if (std::exchange(s->busy, true)) return PyErr_Format(PyExc_RuntimeError, busy);
  PyObject* const batch = guarded<next_batch>(s, r, args[4] == Py_True, args[6]);
  s->busy = false;
  return batch;
}

MILLRACE_INLINE PyObject* session_close(PyObject*, PyObject* args) {
  PyObject *capsule = nullptr, *deliver = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &deliver)) return nullptr;
  running* const s = session_of(capsule);
  if (!s || s->busy) return s ? PyErr_Format(PyExc_RuntimeError, busy) : nullptr;
  s->close();
  deliver_notices(*s->notices, deliver);
  return Py_NewRef(Py_None);
}

MILLRACE_INLINE PyObject* session_get(PyObject*, PyObject* args) {
  PyObject* capsule = nullptr;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "Os", &capsule, &name)) return nullptr;
  running* const s = session_of(capsule);
  return s ? s->get(name) : nullptr;
}

/// Implements _epoch_of(text), which returns the epoch of a resume point.
MILLRACE_INLINE PyObject* epoch_of(PyObject*, PyObject* object) {
  std::string text;
  if (!read(object, text, {"load_state_dict", "millrace"})) return nullptr;
  return to_python(parse_position(text).epoch);
}

/// Reads the options of the session from a dict. Options that are None keep their defaults.
MILLRACE_INLINE bool read_session_options(const char* function, PyObject* dict, session_options& o) {
  std::optional<std::size_t> rank, size;
  std::string policy = "fail";
  const auto read_one = [&](const char* name, auto& value) {
    PyObject* const object = PyDict_GetItemString(dict, name);   // borrowed
    return !object || object == Py_None || read(object, value, {function, name});
  };
  if (!read_one("epochs", o.epochs) || !read_one("epoch_batches", o.epoch_batches) || !read_one("threads", o.threads) ||
      !read_one("io_threads", o.io_threads) || !read_one("memory_bytes", o.memory_bytes) ||
      !read_one("read_ahead_bytes", o.read_ahead_bytes) || !read_one("extra_slots", o.extra_slots) ||
      !read_one("lanes", o.lanes) || !read_one("grown", o.grown) || !read_one("resume", o.resume) ||
      !read_one("first_epoch", o.first_epoch) || !read_one("rank", rank) || !read_one("world_size", size) ||
      !read_one("on_damage", policy) || !read_one("quarantine", o.on_damage.quarantine))
    return false;
  o.on_damage.policy = policy == "replace" ? damage::replace : policy == "mask" ? damage::mask : damage::fail;
  o.world = rank || size ? world{.rank = rank.value_or(0), .size = size.value_or(1)} : world_from_launcher();
  return true;
}

/// Implements open(flow_options, session_options, deliver, checks). Returns a capsule with the session. If `checks` is
/// true, only checks the options, and returns None. `self` is a capsule with a loader_entry.
MILLRACE_INLINE PyObject* open_session(PyObject* self, PyObject* args) {
  PyObject *flow = nullptr, *run = nullptr, *deliver = nullptr;
  int checks = 0;
  if (!PyArg_ParseTuple(args, "O!O!Op", &PyDict_Type, &flow, &PyDict_Type, &run, &deliver, &checks)) return nullptr;
  const auto* const defaults = static_cast<const loader_entry*>(PyCapsule_GetPointer(self, loader_name));
  session_options o{.epochs = endless};
  if (!defaults || !read_session_options(defaults->name, run, o)) return nullptr;
  std::unique_ptr<loader_entry> loader = defaults->copy();
  for (const option& one : loader->options) {
    const std::string name = last_name(one.spelling);
    PyObject* const value = PyDict_GetItemString(flow, name.c_str());   // borrowed
    if (value && !one.read(value, loader->values(), {loader->name, name.c_str()})) return nullptr;
  }
  if (checks) return Py_NewRef(Py_None);
  auto session = std::make_unique<running>();
  o.notice = [queue = session->notices](const notice& n) {
    const std::lock_guard lock(queue->mutex);
    queue->notices.push_back(n);
  };
  std::packaged_task<std::unique_ptr<door>()> task([l = std::move(loader), o = std::move(o)] { return l->open(o); });
  std::future<std::unique_ptr<door>> started = task.get_future();
  std::thread starter(std::move(task));
  for (bool done = false; !done;) {
    without_gil([&]() noexcept {
      done = started.wait_for(std::chrono::nanoseconds(running::signal_check_ns)) == std::future_status::ready;
    });
    deliver_notices(*session->notices, deliver);
    if (!done && PyErr_CheckSignals() != 0) {
      starter.detach();
      return nullptr;
    }
  }
  starter.join();
  session->run = started.get();
  return new_capsule<session_name>(std::move(session));
}

/// Adds a function to a module. Returns false after a Python exception.
MILLRACE_INLINE bool add_loader(PyObject* module, PyObject* package, std::unique_ptr<loader_entry> loader) {
  static const PyMethodDef open{"open", guarded<open_session>, METH_VARARGS, nullptr};
  const reference parameters(PyList_New(0));   // tuples (name, annotation, default)
  for (const option& one : loader->options) {
    const std::string name = last_name(one.spelling), annotation = one.annotation();
    const reference item(Py_BuildValue("ssN", name.c_str(), annotation.c_str(), one.value(loader->values())));
    if (!parameters || !item || PyList_Append(parameters.get(), item.get()) != 0) return false;
  }
  const char *const name = loader->name, *const doc = loader->doc;
  const reference capsule(new_capsule<loader_name>(std::move(loader)));
  const reference opens(capsule ? PyCFunction_NewEx(const_cast<PyMethodDef*>(&open), capsule.get(), nullptr) : nullptr);
  const reference function(
      opens ? PyObject_CallMethod(package, "loader_function", "OssOO", module, name, doc, opens.get(), parameters.get())
            : nullptr);
  return function && PyObject_SetAttrString(module, name, function.get()) == 0;
}

using loader_list = std::span<const std::unique_ptr<loader_entry>>;
MILLRACE_INLINE PyObject* new_module(const char* name, loader_list loaders) {
  constexpr auto fast = [](PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
  };
  static const PyMethodDef functions[] = {{"_next", fast(guarded<session_next>), METH_FASTCALL, nullptr},
                                          {"_close", guarded<session_close>, METH_VARARGS, nullptr},
                                          {"_get", guarded<session_get>, METH_VARARGS, nullptr},
                                          {"_dlpack", fast(guarded<column_dlpack>), METH_FASTCALL, nullptr},
                                          {"_describe", guarded<column_description>, METH_O, nullptr},
                                          {"_epoch_of", guarded<epoch_of>, METH_O, nullptr},
                                          {nullptr, nullptr, 0, nullptr}};
  // The definition is never freed, because CPython refers to it until the process ends.
  // clang-format off
  auto* const definition = new PyModuleDef{PyModuleDef_HEAD_INIT, name, nullptr, -1,
                                           const_cast<PyMethodDef*>(functions), nullptr, nullptr, nullptr, nullptr};
  // clang-format on
  const reference package(PyImport_ImportModule("millrace.loader"));
  reference module(package ? PyModule_Create(definition) : nullptr);
  for (const std::unique_ptr<loader_entry>& loader : loaders)
    if (!module || !add_loader(module.get(), package.get(), loader->copy())) return nullptr;
  return module.release();
}

MILLRACE_INLINE PyObject* create_module(const char* name, loader_list loaders) {
  return guarded<new_module>(name, loaders);
}

}}}}   // namespace millrace::detail::python
