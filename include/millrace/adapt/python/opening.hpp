// Opens sessions for Python: options of the flow and of the session as dicts, and the start on another thread.
//
//   const auto* loader = new mr::detail::python::loader_of<decltype(train), &options::shards>("train", train, "");
//   // In Python: session = open(flow_options, run_options, deliver, False)
//
// A start may build indexes for minutes. It runs on another thread, so that Ctrl-C ends the wait; the start then
// continues without an owner, and ends with its session.
// Errors: null, with a Python exception. Threads: the caller owns Python's global lock.
#pragma once

#include <millrace/adapt/python/sessions.hpp>
#include <millrace/item/column/member.hpp>
#include <millrace/item/world.hpp>
#include <millrace/sync/doorbell.hpp>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
namespace [[gnu::visibility("hidden")]] python {

/// Reads the options of the session from a dict; options that are None keep their defaults.
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
  if (policy != "fail" && policy != "replace" && policy != "mask") {
    PyErr_Format(PyExc_ValueError, "%s() argument 'on_damage' must be 'fail', 'replace' or 'mask', not '%s'", function,
                 policy.c_str());
    return false;
  }
  o.on_damage.policy = policy == "fail" ? damage::fail : policy == "replace" ? damage::replace : damage::mask;
  o.world = rank || size ? world{.rank = rank.value_or(0), .size = size.value_or(1)} : world_from_launcher();
  return true;
}

inline constexpr char loader_name[] = "millrace.loader";

/// A function of the module that creates loaders.
class loader_base {
 public:
  using opener = std::function<std::unique_ptr<door>(const session_options&)>;

  loader_base(const char* name, const char* doc) : name_(name), doc_(doc) {}
  virtual ~loader_base() = default;
  const char* name() const noexcept { return name_; }
  const char* doc() const noexcept { return doc_; }
  /// Returns a list of tuples (name, annotation, whether it is required, default).
  virtual PyObject* parameters() const = 0;
  /// Returns an empty function after a Python exception.
  virtual opener prepare(PyObject* flow_options) const = 0;

 private:
  const char *name_, *doc_;
};

template <class Make, auto... Options>
class loader_of final : public loader_base {
  using options = std::tuple_element_t<0, std::tuple<member_owner<Options>...>>;

 public:
  loader_of(const char* name, Make make, const char* doc) : loader_base(name, doc), make_(std::move(make)) {}

  PyObject* parameters() const override {
    const options defaults{};
    reference list(PyList_New(0));
    bool required = true;   // up to the first option with a default: not an empty string or list
    const auto add = [&]<auto M>() {
      using type = member_type<M>;
      if constexpr (std::is_same_v<type, std::string> || is_vector<type>) required = required && (defaults.*M).empty();
      else required = false;
      PyObject* const value = to_python(defaults.*M);
      const reference one(value ? Py_BuildValue("ssNN", name_of<M>().c_str(), annotation_of<type>().c_str(),
                                                PyBool_FromLong(required), value)
                                : nullptr);
      return one && PyList_Append(list.get(), one.get()) == 0;
    };
    return list && (add.template operator()<Options>() && ...) ? list.release() : nullptr;
  }

  opener prepare(PyObject* flow_options) const override {
    options o{};
    const auto set = [&]<auto M>() {
      const std::string option = name_of<M>();
      PyObject* const value = PyDict_GetItemString(flow_options, option.c_str());   // borrowed
      return !value || read(value, o.*M, {name(), option.c_str()});
    };
    if (!(set.template operator()<Options>() && ...)) return {};
    return [make = make_, o = std::move(o)](const session_options& run) -> std::unique_ptr<door> {
      return std::make_unique<door_of<std::remove_cvref_t<decltype(make(o))>>>(make(o), run);
    };
  }

 private:
  template <auto M>
  static std::string name_of() {
    return last_name(member_spelling<M>.data());
  }
  Make make_;
};

/// A start that runs on another thread.
struct opening {
  std::unique_ptr<door> run{};
  std::exception_ptr failure{};
  std::atomic<bool> done{false};
  doorbell bell{};
  std::shared_ptr<notice_queue> notices = std::make_shared<notice_queue>();
};

/// Starts the session. Returns null after a signal whose handler raised an exception.
inline std::shared_ptr<opening> start(loader_base::opener open, session_options o, PyObject* deliver) {
  const auto state = std::make_shared<opening>();
  o.notice = [notices = state->notices](const notice& n) { notices->add(n); };
  std::thread starter([state, open = std::move(open), o = std::move(o)] {
    try {
      state->run = open(o);
    } catch (...) {
      state->failure = std::current_exception();
    }
    state->done.store(true);
    state->bell.ring();
  });
  for (;;) {
    without_gil([&]() noexcept { state->bell.wait_at_most(signal_check_ns, [&] { return state->done.load(); }); });
    deliver_notices(*state->notices, deliver);
    if (state->done.load()) break;
    if (PyErr_CheckSignals() != 0) {
      starter.detach();
      return nullptr;
    }
  }
  starter.join();
  return state;
}

/// open(flow_options, session_options, deliver, checks): a capsule with the session; with `checks`, only checks the
/// options. It is bound to a capsule with a loader_base.
inline PyObject* open_session(PyObject* self, PyObject* args) {
  PyObject *flow = nullptr, *run = nullptr, *deliver = nullptr;
  int checks = 0;
  if (!PyArg_ParseTuple(args, "O!O!Op", &PyDict_Type, &flow, &PyDict_Type, &run, &deliver, &checks)) return nullptr;
  const auto* const loader = static_cast<const loader_base*>(PyCapsule_GetPointer(self, loader_name));
  if (!loader) return nullptr;
  try {
    session_options o{.epochs = endless};
    if (!read_session_options(loader->name(), run, o)) return nullptr;
    loader_base::opener open = loader->prepare(flow);
    if (!open) return nullptr;
    if (checks) return Py_NewRef(Py_None);
    const std::shared_ptr<opening> state = start(std::move(open), std::move(o), deliver);
    if (!state) return nullptr;
    if (state->failure) return raise(state->failure);
    auto session = std::make_unique<running>();
    session->run = std::move(state->run);
    session->notices = state->notices;
    return new_capsule<session_name>(std::move(session));
  } catch (const std::exception&) {
    return raise(std::current_exception());
  }
}

}}}}  // namespace millrace::detail::python
