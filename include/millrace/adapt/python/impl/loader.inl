// Definitions for values.hpp and loader.hpp: the functions of a module, for the Python package:
//
//   session = open(flow_options, session_options, deliver, False)
//   next = _bind(session, begun, warn, stream, copies, column_type, deliver)
//   batch = next(epoch)                  # of the first batch of a loop; then next(plan). None at the end
//   _get(session, "position"), _close(session, deliver), _epoch_of(position)
//
// open() and next() wait without Python's global lock, and check for signals every 50 ms, so that Ctrl-C ends the
// wait. next() can then be repeated without loss of a batch. open() starts the session on another thread, which
// destroys the session if the wait was ended. `deliver` receives the notices of the session, or is None.
#pragma once

#include <millrace/adapt/python/loader.hpp>
#include <millrace/adapt/python/sessions.hpp>
#include <millrace/base/error.hpp>
#include <millrace/item/world.hpp>

#include <chrono>
#include <cxxabi.h>
#include <future>
#include <new>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace [[gnu::visibility("hidden")]] python {

MILLRACE_INLINE bool wrong_type(PyObject* from, const argument& of, const char* expected) {
  PyErr_Clear();
  const reference name = attribute(reinterpret_cast<PyObject*>(Py_TYPE(from)), "__name__");
  if (name)
    PyErr_Format(PyExc_TypeError, "%s() argument '%s' must be %s, not %S", of.function, of.name, expected, name.get());
  return false;
}

MILLRACE_INLINE bool read_integer(PyObject* from, unsigned long long& bits, long long min, unsigned long long max,
                                  const argument& of) {
  if (!PyIndex_Check(from) || PyBool_Check(from)) return wrong_type(from, of, "an integer");
  const reference number(PyNumber_Index(from));
  if (!number) return false;
  bits = PyLong_AsUnsignedLongLongMask(number.get());
  const auto value = static_cast<long long>(bits);
  const reference same(min < 0 ? PyLong_FromLongLong(value) : PyLong_FromUnsignedLongLong(bits));
  if (!same) return false;
  const bool fits = min < 0 && value < 0 ? value >= min : bits <= max;
  if (fits && PyObject_RichCompareBool(number.get(), same.get(), Py_EQ) == 1) return true;
  PyErr_Format(PyExc_OverflowError, "%s() argument '%s' is out of range: got %S, expected %s to %s", of.function,
               of.name, number.get(), std::to_string(min).c_str(), std::to_string(max).c_str());
  return false;
}

MILLRACE_INLINE reference list_of(PyObject* from, const argument& of) {
  reference list(PyUnicode_Check(from) || PyBytes_Check(from) ? nullptr : PySequence_List(from));
  if (!list) wrong_type(from, of, "a list");
  return list;
}

MILLRACE_INLINE bool read(PyObject* from, bool& to, const argument& of) {
  to = from == Py_True;
  return PyBool_Check(from) || wrong_type(from, of, "bool");
}

MILLRACE_INLINE bool read(PyObject* from, std::string& to, const argument& of) {
  const reference path(PyOS_FSPath(from));   // str, bytes, or an object such as a pathlib.Path
  if (!path) return wrong_type(from, of, "str or a path");
  const reference bytes(PyBytes_Check(path.get()) ? Py_NewRef(path.get()) : PyUnicode_EncodeFSDefault(path.get()));
  if (!bytes) return false;
  to.assign(PyBytes_AsString(bytes.get()), static_cast<std::size_t>(PyBytes_Size(bytes.get())));
  return true;
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
} catch (const error& e) {
  const auto* const of_stage = dynamic_cast<const stage_error*>(&e);
  const char* const name = of_stage                                      ? "StageError"
                           : dynamic_cast<const setup_error*>(&e)        ? "SetupError"
                           : dynamic_cast<const late_data_error*>(&e)    ? "LateDataError"
                           : dynamic_cast<const data_error*>(&e)         ? "DataError"
                           : dynamic_cast<const io_error*>(&e)           ? "StorageError"
                           : dynamic_cast<const conservation_error*>(&e) ? "ConservationError"
                                                                         : "Error";
  const reference package(PyImport_ImportModule("millrace"));
  const reference type = package ? attribute(package.get(), name) : nullptr;
  if (!type) return nullptr;
  const auto number = [](std::uint64_t n) {
    return n == error_location::unknown ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(n);
  };
  const error_location& where = e.where();
  const reference object(PyObject_CallFunction(type.get(), "NNNNNNNN", str_of(e.what()), str_of(e.message()),
                                               str_of(e.hint()), str_of(where.stage), str_of(where.shard),
                                               str_of(where.key), number(where.offset_bytes), number(where.position)));
  if (object && of_stage)
    PyException_SetCause(object.get(),
                         PyObject_CallFunction(PyExc_RuntimeError, "N", str_of(text_of(of_stage->cause()))));
  if (object) PyErr_SetObject(type.get(), object.get());
  return nullptr;
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
inline constexpr char session_name[] = "millrace.session", loader_name[] = "millrace.loader";

/// Implements __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None), which returns a DLPack capsule.
/// `stream` is a number of the DLPack protocol, such as 1 for the legacy default stream.
MILLRACE_INLINE PyObject* column_dlpack(PyObject* self, PyObject* args, PyObject* named) {
  static const char* const names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if ((named || PyTuple_Size(args) > 0) &&
      !PyArg_ParseTupleAndKeywords(args, named, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream, &max_version,
                                   &device, &copy))
    return nullptr;
  long long number = 1;
  if (stream != Py_None || device != Py_None || copy != Py_None) {
    const reference check = attribute(self, "_check");
    const reference checked(check ? PyObject_CallFunctionObjArgs(check.get(), stream, device, copy, nullptr) : nullptr);
    if (!checked || !read(checked.get(), number, {"__dlpack__", "stream"})) return nullptr;
  }
  const reference major(max_version != Py_None ? PySequence_GetItem(max_version, 0) : PyLong_FromLong(0));
  const bool is_versioned = major && PyLong_AsLong(major.get()) >= 1;
  if (PyErr_Occurred()) return nullptr;
  const column& c = column_of(self);
  if (number != -1) c.used_on(stream_view(number == 1 ? nullptr : reinterpret_cast<CUstream_st*>(number)));
  return is_versioned ? capsule_of<dlpack_versioned>(c.tensor, c.owner) : capsule_of<dlpack_managed>(c.tensor, c.owner);
}

/// Returns the extents, the DLPack device, and the type code, bits and address.
MILLRACE_INLINE PyObject* column_description(PyObject* self, PyObject*) {
  const dlpack_column& t = column_of(self).tensor;
  return Py_BuildValue("N(ii)iiN", to_python(std::span(t.shape).first(t.rank)), t.device.device_type,
                       t.device.device_id, int{t.type.code}, int{t.type.bits}, PyLong_FromVoidPtr(t.data));
}

/// Passes the waiting notices to `deliver`.
MILLRACE_INLINE void deliver_notices(notice_queue& notices, PyObject* deliver) {
  constexpr const char* severities[] = {"info", "warning", "loss"};
  std::unique_lock lock(notices.mutex);
  const std::vector<notice> waiting = std::exchange(notices.notices, {});
  lock.unlock();
  for (const notice& n : waiting) {
    if (deliver == Py_None) continue;
    const reference result(PyObject_CallFunction(deliver, "ssN", text_of(n.kind),
                                                 severities[static_cast<std::size_t>(n.severity)], str_of(n.text)));
    if (!result) PyErr_WriteUnraisable(deliver);
  }
}

/// Borrowed arguments of _bind(). `begun`, `warn` and `stream` are bound methods. `column_type` is None for torch.
struct loop_arguments {
  PyObject *session, *begun, *warn, *stream, *copies, *column_type, *deliver;
};

/// Returns a list of the columns, and of the keys if the flow has keys.
MILLRACE_INLINE PyObject* batch_values(running& s, const loop_arguments& l) {
  const bool raw = l.column_type == Py_None;
  if (raw && s.batch().device_ordinal() >= 0) {
    const reference stream(PyObject_CallNoArgs(l.stream));
    void* const handle = stream ? PyLong_AsVoidPtr(stream.get()) : nullptr;
    if (PyErr_Occurred()) return nullptr;
    s.columns.front().used_on(stream_view(static_cast<CUstream_st*>(handle)));
  }
  reference values(PyList_New(0));
  const auto add = [&](PyObject* object) {
    const reference value(object);
    return values && value && PyList_Append(values.get(), value.get()) == 0;
  };
  for (column& c : s.columns)
    if (!add(raw ? torch_capsule_of(c) : new_column(l.column_type, std::move(c)))) return nullptr;
  return !s.batch().has_keys() || add(to_python(s.batch().keys())) ? values.release() : nullptr;
}

/// Waits for the next batch and returns its values, or None at the end. Returns null after an error, or if a signal
/// handler raised an exception. If the loop begins, sets `plan`.
MILLRACE_INLINE PyObject* next_values(running* s, std::optional<std::uint64_t> begins, const loop_arguments* l,
                                      reference* plan) {
  for (outcome next = outcome::waits; next == outcome::waits;) {
    const std::exception_ptr failure = without_gil([&] { next = s->next(begins, l->copies == Py_True); });
    deliver_notices(*s->notices, l->deliver);
    if (failure) return raise(failure);
    if (next == outcome::ends) return Py_NewRef(Py_None);
    if (next == outcome::waits && PyErr_CheckSignals() != 0) return nullptr;
  }
  reference values(batch_values(*s, *l));
  if (values && begins) plan->reset(PyObject_CallFunctionObjArgs(l->begun, values.get(), nullptr));
  if (!values || !*plan) return nullptr;
  s->commit();
  return values.release();
}

/// Returns a named tuple of the values. `plan` is a tuple of its class and, for each column, its converter or None.
MILLRACE_INLINE PyObject* batch_of(PyObject* values, PyObject* plan) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(plan) - 1; ++i) {
    PyObject* const convert = PyTuple_GetItem(plan, i + 1);
    if (convert == Py_None) continue;
    PyObject* const value = PyObject_CallFunctionObjArgs(convert, PyList_GetItem(values, i), nullptr);
    if (!value || PyList_SetItem(values, i, value) != 0) return nullptr;
  }
  static const auto create = reinterpret_cast<newfunc>(PyType_GetSlot(&PyTuple_Type, Py_tp_new));
  const reference arguments(PyTuple_Pack(1, values));
  return arguments ? create(reinterpret_cast<PyTypeObject*>(PyTuple_GetItem(plan, 0)), arguments.get(), nullptr)
                   : nullptr;
}

inline constexpr const char* busy = "millrace: another thread waits for a batch of this loader. Use one per thread.";

MILLRACE_INLINE running* session_of(PyObject* capsule) {
  return static_cast<running*>(PyCapsule_GetPointer(capsule, session_name));
}
/// Implements the function next(state) of a loop. For the first batch, `state` is the epoch, and _Loop._begun() returns
/// the state of the other batches, which is the plan of batch_of().
MILLRACE_INLINE PyObject* session_next(PyObject* bound, PyObject* state) {
  const auto item = [bound](Py_ssize_t n) { return PyTuple_GetItem(bound, n); };
  const loop_arguments l{item(0), item(1), item(2), item(3), item(4), item(5), item(6)};
  running* const s = session_of(l.session);
  std::optional<std::uint64_t> begins;
  if (!s || (!PyTuple_Check(state) && !read(state, begins, {"set_epoch", "epoch"}))) return nullptr;
  if (!s->run) return PyErr_Format(PyExc_ValueError, closed);
  if (std::exchange(s->busy, true)) return PyErr_Format(PyExc_RuntimeError, busy);
  reference plan(Py_NewRef(state)), values(guarded<next_values>(s, begins, &l, &plan));
  s->busy = false;
  if (!values || values.get() == Py_None) return values.release();
  const reference warned(s->copied ? PyObject_CallNoArgs(l.warn) : Py_NewRef(Py_None));
  return warned ? batch_of(values.get(), plan.get()) : nullptr;
}
/// Implements _bind() with the members of loop_arguments. Returns the function next(state) of a loop.
MILLRACE_INLINE PyObject* bind_loop(PyObject*, PyObject* args) {
  static const PyMethodDef next{"next", guarded<session_next>, METH_O, nullptr};
  if (PyTuple_Size(args) != 7) return PyErr_Format(PyExc_TypeError, "_bind() has seven arguments");
  return PyCFunction_NewEx(const_cast<PyMethodDef*>(&next), args, nullptr);
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
  return read(object, text, {"load_state_dict", "millrace"}) ? to_python(parse_position(text).epoch) : nullptr;
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
    PyObject* const value = PyDict_GetItemString(flow, one.name);   // borrowed
    if (value && !one.read(value, loader->values(), {loader->name, one.name})) return nullptr;
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
    without_gil([&] {
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
    const reference item(Py_BuildValue("ssN", one.name, one.annotation().c_str(), one.value(loader->values())));
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

/// Adds the class of the columns to a module. Returns false after a Python exception.
MILLRACE_INLINE bool add_column_type(PyObject* module) {
  const auto dlpack = reinterpret_cast<void (*)()>(guarded<column_dlpack, PyObject*, PyObject*, PyObject*>);
  static const PyMethodDef methods[] = {
      {"__dlpack__", reinterpret_cast<PyCFunction>(dlpack), METH_VARARGS | METH_KEYWORDS, "Returns a DLPack capsule."},
      {"_describe", guarded<column_description>, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_methods, const_cast<PyMethodDef*>(methods)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(free_column)},
                         {0, nullptr}};
  PyType_Spec spec{"millrace.Column", sizeof(column_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  const reference type(PyType_FromSpec(&spec));
  return type && PyObject_SetAttrString(module, "_Column", type.get()) == 0;
}

MILLRACE_INLINE PyObject* new_module(const char* name, std::span<const std::unique_ptr<loader_entry>> loaders) {
  static const PyMethodDef functions[] = {{"_bind", guarded<bind_loop>, METH_VARARGS, nullptr},
                                          {"_close", guarded<session_close>, METH_VARARGS, nullptr},
                                          {"_get", guarded<session_get>, METH_VARARGS, nullptr},
                                          {"_epoch_of", guarded<epoch_of>, METH_O, nullptr},
                                          {nullptr, nullptr, 0, nullptr}};
  // The definition is never freed, because CPython refers to it until the process ends.
  constexpr PyModuleDef_Base head = PyModuleDef_HEAD_INIT;
  auto* const definition = new PyModuleDef{head,    name,    nullptr, -1,     const_cast<PyMethodDef*>(functions),
                                           nullptr, nullptr, nullptr, nullptr};
  const reference package(PyImport_ImportModule("millrace.loader"));
  reference module(package ? PyModule_Create(definition) : nullptr);
  if (!module || !add_column_type(module.get())) return nullptr;
  for (const std::unique_ptr<loader_entry>& loader : loaders)
    if (!add_loader(module.get(), package.get(), loader->copy())) return nullptr;
  return module.release();
}

MILLRACE_INLINE PyObject* create_module(const char* name, std::span<const std::unique_ptr<loader_entry>> loaders) {
  return guarded<new_module>(name, loaders);
}

}}}}   // namespace millrace::detail::python
