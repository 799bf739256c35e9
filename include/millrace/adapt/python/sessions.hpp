// Sessions and columns as Python capsules (Python objects that own a C pointer). The Python package calls these
// functions of the module:
//
//   columns, keys, copied = _next(session, epoch, starts, copies, raw, stream, deliver)    # or None at the end
//   _get(session, "position"), _close(session, deliver), _epoch_of(position)
//   _dlpack(column, stream, versioned), _describe(column)
//
// _next() waits without Python's global lock, and checks for signals every 50 ms, so that Ctrl-C ends the wait. After
// that, the call can be repeated without loss of a batch. `deliver` is a callable that receives the notices of the
// session.
// Errors: the functions set a Python exception and return null. Threads: one thread at a time may call _next() or
// _close().
#pragma once

#include <millrace/adapt/python/door.hpp>

#include <memory>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
namespace [[gnu::visibility("hidden")]] python {

/// Returns a capsule that owns a C++ object.
template <const char* Name, class T>
PyObject* new_capsule(std::unique_ptr<T> object) {
  PyObject* const capsule = PyCapsule_New(object.get(), Name, [](PyObject* self) {
    delete static_cast<T*>(PyCapsule_GetPointer(self, Name));
  });
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
  std::shared_ptr<const void> owner = c.memory;
  if (!owner) owner = c.batch;
  Managed* const exported = export_dlpack<Managed>(tensor, std::move(owner));
  PyObject* const capsule = PyCapsule_New(exported, name, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, name)) return;   // a receiver owns the tensor, because it has renamed the capsule
    auto* const unused = static_cast<Managed*>(PyCapsule_GetPointer(self, name));
    unused->deleter(unused);
  });
  if (!capsule) exported->deleter(exported);
  return capsule;
}

/// Implements _dlpack(column, stream, versioned), which returns a DLPack capsule. `stream` is a number of the DLPack
/// protocol: 1 is the legacy default stream, 2 is the default stream of the thread, and -1 requests no synchronization.
inline PyObject* column_dlpack(PyObject*, PyObject* args) {
  PyObject* capsule = nullptr;
  long long stream = 1;
  int versioned = 0;
  if (!PyArg_ParseTuple(args, "OLp", &capsule, &stream, &versioned)) return nullptr;
  const auto* const c = static_cast<const column*>(PyCapsule_GetPointer(capsule, column_name));
  if (!c) return nullptr;
  if (c->tensor.device.device_type != dlpack_cpu && stream != -1)
    c->batch->used_on(stream == 1 ? stream_view() : stream_view(reinterpret_cast<CUstream_st*>(stream)));
  return versioned ? capsule_of<dlpack_versioned>(*c, false) : capsule_of<dlpack_managed>(*c, false);
}

/// Implements _describe(column), which returns the extents, the DLPack device, and the type code, bits and address.
inline PyObject* column_description(PyObject*, PyObject* capsule) {
  const auto* const c = static_cast<const column*>(PyCapsule_GetPointer(capsule, column_name));
  if (!c) return nullptr;
  const dlpack_column& t = c->tensor;
  return Py_BuildValue("N(ii)iiK", to_python(std::vector(t.shape.begin(), t.shape.begin() + t.rank)),
                       t.device.device_type, t.device.device_id, int{t.type.code}, int{t.type.bits},
                       static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(t.data)));
}

inline constexpr std::uint64_t signal_check_ns = 50'000'000;

/// A session that Python owns.
struct running {
  std::unique_ptr<door> run{};   ///< null after _close()
  std::shared_ptr<notice_queue> notices = std::make_shared<notice_queue>();
  bool busy = false;             ///< a thread is in _next()
  std::uint64_t epoch = 0, step = 0;
  std::optional<position> last{};

  ~running() { close(); }
  /// Ends the run and joins its threads.
  void close() noexcept {
    if (run) without_gil([&]() noexcept { run.reset(); });
  }
};

/// Passes the waiting notices to `deliver`, which is a callable or None.
inline void deliver_notices(notice_queue& notices, PyObject* deliver) {
  constexpr const char* severities[] = {"info", "warning", "loss"};
  std::vector<notice> waiting;
  {
    const std::lock_guard lock(notices.mutex);
    waiting.swap(notices.notices);
  }
  for (const notice& n : waiting) {
    if (deliver == Py_None) continue;
    const reference result(PyObject_CallFunction(deliver, "ssN", text_of(n.kind),
                                                 severities[static_cast<std::size_t>(n.severity)], str_of(n.text)));
    if (!result) PyErr_WriteUnraisable(deliver);
  }
}

/// Calls `act` without Python's global lock. Returns the exception of `act`, or null.
template <class Act>
std::exception_ptr failure_of(const Act& act) {
  std::exception_ptr failure;
  without_gil([&]() noexcept {
    try {
      act();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  return failure;
}

/// Returns the tuple (columns, keys or None, whether all columns are copies).
inline PyObject* batch_tuple(delivered& d, bool raw) {
  const auto count = static_cast<Py_ssize_t>(d.columns.size());
  const reference columns(PyTuple_New(count));
  for (Py_ssize_t i = 0; columns && i < count; ++i) {
    column& c = d.columns[static_cast<std::size_t>(i)];
    // For versions of torch whose DLPack support lacks bool.
    const bool marked = raw && c.tensor.type.code == dlpack_bool;
    if (marked) c.tensor.type.code = dlpack_uint;
    PyObject* object = raw ? capsule_of<dlpack_managed>(c, true)
                           : new_capsule<column_name>(std::make_unique<column>(c));
    if (marked && object) object = Py_BuildValue("(N)", object);
    if (!object || PyTuple_SetItem(columns.get(), i, object) != 0) return nullptr;
  }
  const reference keys(to_python(d.keys));
  return columns && keys ? PyTuple_Pack(3, columns.get(), keys.get(), d.copied ? Py_True : Py_False) : nullptr;
}

/// Waits for the next batch and returns it. Returns null after an error, or if a signal handler raised an exception.
inline PyObject* next_batch(running& s, const request& r, bool raw, PyObject* deliver) {
  std::exception_ptr failure;
  bool available = false;
  while (!available && !failure) {
    failure = failure_of([&] { available = s.run->wait(signal_check_ns, r.epoch); });
    deliver_notices(*s.notices, deliver);
    if (!available && PyErr_CheckSignals() != 0) return nullptr;
  }
  delivered d;
  if (!failure) failure = failure_of([&] { available = s.run->next(r, d); });
  deliver_notices(*s.notices, deliver);
  if (failure) return raise(failure);
  if (!available) return Py_NewRef(Py_None);
  PyObject* const batch = batch_tuple(d, raw);
  if (!batch) return nullptr;
  s.run->commit();
  s.epoch = d.epoch;
  s.step = d.step;
  s.last = std::move(d.next);
  return batch;
}

inline running* session_of(PyObject* capsule) {
  return static_cast<running*>(PyCapsule_GetPointer(capsule, session_name));
}
inline PyObject* raise_closed() {
  return raise(PyExc_ValueError, "millrace: the loader is closed. Start another loop over it.");
}
inline PyObject* raise_busy() {
  return raise(PyExc_RuntimeError, "millrace: another thread waits for a batch of this loader. Use one per thread.");
}

inline PyObject* session_next(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 7) return raise(PyExc_TypeError, "_next() has seven arguments");
  running* const s = session_of(args[0]);
  request r{.starts = args[2] == Py_True, .copies = args[3] == Py_True};
  std::optional<std::uint64_t> stream;
  if (!s || !read(args[1], r.epoch, {"_next", "epoch"}) || !read(args[5], stream, {"_next", "stream"})) return nullptr;
  if (stream) r.stream = stream_view(reinterpret_cast<CUstream_st*>(*stream));
  if (!s->run) return raise_closed();
  if (std::exchange(s->busy, true)) return raise_busy();
  PyObject* const batch = guarded([&] { return next_batch(*s, r, args[4] == Py_True, args[6]); });
  s->busy = false;
  return batch;
}

/// Implements _close(session, deliver).
inline PyObject* session_close(PyObject*, PyObject* args) {
  PyObject *capsule = nullptr, *deliver = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &deliver)) return nullptr;
  running* const s = session_of(capsule);
  if (!s || s->busy) return s ? raise_busy() : nullptr;
  s->close();
  deliver_notices(*s->notices, deliver);
  return Py_NewRef(Py_None);
}

/// Implements _get(session, name).
inline PyObject* session_get(PyObject*, PyObject* args) {
  PyObject* capsule = nullptr;
  const char* word = nullptr;
  if (!PyArg_ParseTuple(args, "Os", &capsule, &word)) return nullptr;
  const running* const s = session_of(capsule);
  if (!s) return nullptr;
  const std::string_view name = word;
  if (name == "epoch") return to_python(s->epoch);
  if (name == "step") return to_python(s->step);
  if (name == "position") return to_python(s->last ? to_text(*s->last) : std::string());
  if (name == "indexed") return to_python(s->last && s->last->has_index());
  return s->run ? s->run->get(word) : raise_closed();
}

/// Implements _epoch_of(text), which returns the epoch of a resume point.
inline PyObject* epoch_of(PyObject*, PyObject* object) {
  std::string text;
  if (!read(object, text, {"load_state_dict", "millrace"})) return nullptr;
  return to_python(parse_position(text).epoch);
}

}}}}  // namespace millrace::detail::python
