// Opens sessions for Python. Reads the options of the flow and of the session from dicts, and starts on another thread.
//
//   auto loader = mr::detail::python::entry_of<&options::shards, &options::batch>("train", train, "");
//   // In Python: session = open(flow_options, run_options, deliver, False)
//
// A start may build indexes for minutes. It runs on another thread, so that Ctrl-C ends the wait. In this case the
// session is destroyed when the start ends.
// Errors: the functions set a Python exception, and return null or false. Threads: the caller owns Python's global
// lock.
#pragma once

#include <millrace/adapt/python/sessions.hpp>
#include <millrace/item/column/member.hpp>
#include <millrace/item/world.hpp>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
namespace [[gnu::visibility("hidden")]] python {

/// Reads the options of the session from a dict. Options that are None keep their defaults.
inline bool read_session_options(const char* function, PyObject* dict, session_options& o) {
  std::optional<std::size_t> rank, size;
  std::string policy = "fail";
  const auto read_one = [&](const char* name, auto& value) {
    PyObject* const object = PyDict_GetItemString(dict, name);   // borrowed
    return !object || object == Py_None || read(object, value, {function, name});
  };
  if (!read_one("epochs", o.epochs) || !read_one("epoch_batches", o.epoch_batches) ||
      !read_one("threads", o.threads) || !read_one("io_threads", o.io_threads) ||
      !read_one("memory_bytes", o.memory_bytes) || !read_one("read_ahead_bytes", o.read_ahead_bytes) ||
      !read_one("extra_slots", o.extra_slots) || !read_one("lanes", o.lanes) || !read_one("grown", o.grown) ||
      !read_one("resume", o.resume) || !read_one("first_epoch", o.first_epoch) || !read_one("rank", rank) ||
      !read_one("world_size", size) || !read_one("on_damage", policy) ||
      !read_one("quarantine", o.on_damage.quarantine))
    return false;
  o.on_damage.policy = policy == "replace" ? damage::replace : policy == "mask" ? damage::mask : damage::fail;
  o.world = rank || size ? world{.rank = rank.value_or(0), .size = size.value_or(1)} : world_from_launcher();
  return true;
}

/// A function of the module that creates loaders.
struct loader_entry {
  using opener = std::function<std::unique_ptr<door>(const session_options&)>;

  const char *name, *doc;
  PyObject* (*parameters)();                   ///< a list of tuples (name, annotation, whether it is required, default)
  /// Reads the options of the flow; returns an empty function after a Python exception.
  std::function<opener(PyObject*)> prepare;
};

template <class Object, auto... Options>
PyObject* parameters_of() {
  const Object defaults{};
  reference list(PyList_New(0));
  bool required = true;   // true while all defaults so far are empty strings or lists
  const auto add = [&]<auto M>() {
    using type = member_type<M>;
    if constexpr (std::is_same_v<type, std::string> || is_vector<type>) required = required && (defaults.*M).empty();
    else required = false;
    const std::string name = last_name(member_spelling<M>.data()), annotation = annotation_of<type>();
    const reference one(Py_BuildValue("ssNN", name.c_str(), annotation.c_str(), PyBool_FromLong(required),
                                      to_python(defaults.*M)));
    return one && PyList_Append(list.get(), one.get()) == 0;
  };
  return list && (add.template operator()<Options>() && ...) ? list.release() : nullptr;
}

template <auto... Options, class Make>
loader_entry entry_of(const char* name, Make make, const char* doc) {
  using options = std::tuple_element_t<0, std::tuple<member_owner<Options>...>>;
  const auto prepare = [name, make = std::move(make)](PyObject* flow_options) -> loader_entry::opener {
    options o{};
    const auto set = [&]<auto M>() {
      const std::string option = last_name(member_spelling<M>.data());
      PyObject* const value = PyDict_GetItemString(flow_options, option.c_str());   // borrowed
      return !value || read(value, o.*M, {name, option.c_str()});
    };
    if (!(set.template operator()<Options>() && ...)) return {};
    return [make, o = std::move(o)](const session_options& run) -> std::unique_ptr<door> {
      return std::make_unique<door_of<std::remove_cvref_t<decltype(make(o))>>>(make(o), run);
    };
  };
  return {.name = name, .doc = doc, .parameters = parameters_of<options, Options...>, .prepare = prepare};
}

/// Starts a session on another thread. Returns null if a signal handler raised an exception.
inline std::unique_ptr<door> start(loader_entry::opener open, session_options o, notice_queue& notices,
                                   PyObject* deliver) {
  std::packaged_task<std::unique_ptr<door>()> task([open = std::move(open), o = std::move(o)] { return open(o); });
  std::future<std::unique_ptr<door>> started = task.get_future();
  std::thread starter(std::move(task));
  for (bool done = false; !done;) {
    without_gil([&]() noexcept {
      done = started.wait_for(std::chrono::nanoseconds(signal_check_ns)) == std::future_status::ready;
    });
    deliver_notices(notices, deliver);
    if (!done && PyErr_CheckSignals() != 0) {
      starter.detach();
      return nullptr;
    }
  }
  starter.join();
  return started.get();
}

/// Implements open(flow_options, session_options, deliver, checks). Returns a capsule with the session. If `checks` is
/// true, only checks the options, and returns None. `self` is a capsule with a loader_entry.
inline PyObject* open_session(PyObject* self, PyObject* args) {
  PyObject *flow = nullptr, *run = nullptr, *deliver = nullptr;
  int checks = 0;
  if (!PyArg_ParseTuple(args, "O!O!Op", &PyDict_Type, &flow, &PyDict_Type, &run, &deliver, &checks)) return nullptr;
  const auto* const loader = static_cast<const loader_entry*>(PyCapsule_GetPointer(self, loader_name));
  if (!loader) return nullptr;
  session_options o{.epochs = endless};
  loader_entry::opener open = read_session_options(loader->name, run, o) ? loader->prepare(flow) : nullptr;
  if (!open) return nullptr;
  if (checks) return Py_NewRef(Py_None);
  auto session = std::make_unique<running>();
  o.notice = [queue = session->notices](const notice& n) {
    const std::lock_guard lock(queue->mutex);
    queue->notices.push_back(n);
  };
  session->run = start(std::move(open), std::move(o), *session->notices, deliver);
  return session->run ? new_capsule<session_name>(std::move(session)) : nullptr;
}

}}}}  // namespace millrace::detail::python
