// A session that Python owns, and its batches.
//
//   while (s.next(epoch, false) == outcome::waits) check_signals();
//   use(s.columns), s.commit();                  // `s` is a `running`
//
// Errors: as for session. Threads: one thread at a time may use a session. Call next() without Python's global lock.
// Any thread may destroy a column.
#pragma once

#include <millrace/adapt/python/loader.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/session_report.hpp>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace [[gnu::visibility("hidden")]] python {

/// Notices that wait until the thread of next() passes them to Python.
struct notice_queue {
  std::mutex mutex{};
  std::vector<notice> notices{};
};

/// A column of a batch. `owner` is the batch, or memory with a copy of the bytes.
struct column {
  dlpack_column tensor{};
  std::shared_ptr<void> owner{};
  batch_lease* device_batch = nullptr;   ///< null for a column on the host

  /// Declares that `stream` uses the column.
  void used_on(stream_view stream) const {
    if (device_batch && !device_batch->is_used_on(stream)) device_batch->also_used_on(stream);
  }
};

/// Returns a DLPack capsule with the tensor.
template <class Managed>
PyObject* capsule_of(const dlpack_column& tensor, std::shared_ptr<const void> owner) {
  static constexpr const char* name = std::is_same_v<Managed, dlpack_versioned> ? "dltensor_versioned" : "dltensor";
  Managed* const exported = export_dlpack<Managed>(tensor, std::move(owner));
  PyObject* const capsule = PyCapsule_New(exported, name, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, name)) return;   // a receiver owns the tensor, because it has renamed the capsule
    auto* const unused = static_cast<Managed*>(PyCapsule_GetPointer(self, name));
    unused->deleter(unused);
  });
  if (!capsule) exported->deleter(exported);
  return capsule;
}

/// Returns a DLPack capsule for any version of torch. u16, u32 and u64 become signed types with the same bits, because
/// torch cannot compute with these unsigned types. bool becomes u8, because some versions have no bool in DLPack.
inline PyObject* torch_capsule_of(column& c) {
  dlpack_column tensor = c.tensor;
  if (tensor.type.code == dlpack_bool) tensor.type.code = dlpack_uint;
  else if (tensor.type.code == dlpack_uint && tensor.type.bits > 8) tensor.type.code = dlpack_int;
  return capsule_of<dlpack_managed>(tensor, std::move(c.owner));
}

/// A column in Python. The Python package millrace adds the members that are not called for every batch.
struct column_object {
  PyObject_HEAD column content;
};
inline PyObject* new_column(PyObject* type, column&& c) {
  auto* const object = PyObject_New(column_object, reinterpret_cast<PyTypeObject*>(type));
  if (object) std::construct_at(&object->content, std::move(c));
  return reinterpret_cast<PyObject*>(object);
}
inline column& column_of(PyObject* self) { return reinterpret_cast<column_object*>(self)->content; }
inline void free_column(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  std::destroy_at(&column_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

inline constexpr const char* closed = "millrace: the loader is closed. Start another loop over it.";
enum class outcome { waits, ends, delivers };

/// Calls `act` without Python's global lock (the GIL). Returns the exception that `act` throws, or null.
template <class Act>
std::exception_ptr without_gil(const Act& act) {
  PyThreadState* const thread = PyEval_SaveThread();
  std::exception_ptr failure;
  try {
    act();
  } catch (...) {
    failure = std::current_exception();
  }
  PyEval_RestoreThread(thread);
  return failure;
}

/// A session that Python owns.
class running {
 public:
  /// Host columns of at most this size are copied, so that a program can keep the labels without keeping the slot.
  static constexpr std::size_t copied_bytes = std::size_t{64} << 10;
  static constexpr std::uint64_t signal_check_ns = 50'000'000;

  std::unique_ptr<door> run{};   ///< null after _close()
  std::shared_ptr<notice_queue> notices = std::make_shared<notice_queue>();
  bool busy = false;               ///< a thread is in _next()
  std::vector<column> columns{};   ///< columns of the batch that next() delivers
  bool copied = false;             ///< true if all columns are copies; commit() then releases the slot

  ~running() { close(); }
  /// Ends the run and joins its threads.
  void close() noexcept {
    columns.clear();
    current_.reset();
    if (run) without_gil([&] { run.reset(); });
  }

  /// Waits at most signal_check_ns for the next batch. For the first batch of a loop, `begins` is the epoch of the
  /// loop; for later batches, `begins` is empty. If `copies` is true and the batches of all slots are in use, columns
  /// on the host are copied, so that commit() releases the slot. Until commit() is called, later calls for the same
  /// epoch deliver the same batch again.
  outcome next(std::optional<std::uint64_t> begins, bool copies) {
    const std::uint64_t epoch = begins.value_or(loop_epoch_);
    if (!current_ || !*current_ || current_->epoch() != epoch) {
      if (!run->engine().wait_at_most(signal_check_ns, epoch)) return outcome::waits;
      current_ = std::make_shared<batch_lease>();   // allocated before the session advances
      loop_epoch_ = epoch;
      batch_lease* const next = run->advance(epoch, begins || !loops_, tensors_);
      loops_ = next != nullptr;
      if (!loops_) return outcome::ends;
      *current_ = std::move(*next);
    }
    const run_core& core = run->engine().core();
    const bool on_host = current_->device_ordinal() < 0;
    copied = on_host && copies && core.leased() >= core.slots();
    columns.clear();
    for (const slot_tensor& tensor : tensors_) {
      column& c = columns.emplace_back(column{.tensor = tensor.content});
      const bool copies_column = on_host && (copied || tensor.content.bytes() <= copied_bytes);
      c.owner = copies_column ? copy_elements(c.tensor) : current_;
      c.device_batch = on_host ? nullptr : current_.get();
    }
    return outcome::delivers;
  }
  const batch_lease& batch() const noexcept { return *current_; }
  void commit() {
    last_ = batch().position();
    at_ = {batch().epoch(), batch().step()};
    columns.clear();
    current_.reset();
  }

  /// Returns the property `name` as a new Python object. Needs Python's global lock.
  PyObject* get(std::string_view name) const {
    if (name == "at") return to_python(at_);
    if (name == "position") return to_python(last_ ? to_text(*last_) : std::string());
    if (name == "indexed") return to_python(last_ && last_->has_index());
    if (!run) return PyErr_Format(PyExc_ValueError, closed);
    const run_core& core = run->engine().core();
    if (name == "slots") return to_python(core.slots());
    if (name == "description") return to_python(core.description());
    if (name == "waits") return to_python(core.waits());
    if (name == "tensors") {   // with type codes of DLPack, such as ["example::pixels 1", "example::words_lengths 0"]
      std::vector<std::string> texts;
      for (const auto& [t, column, suffix] : tensors_)
        texts.push_back(std::string(column) + suffix + " " + std::to_string(t.type.code));
      return to_python(texts);
    }
    if (name == "epoch_batches") return to_python(run->engine().order().numbers().epoch_batches);   // 0: unknown
    if (name == "stats") {
      const run_stats s = core.stats();
      return Py_BuildValue("KKKKKKKKKKd", s.batches, s.samples, s.wait_ns, s.step_ns, s.first_batch_ns, s.dropped_last,
                           s.replaced, s.masked, s.lost_shards, s.digest, s.data_wait_share());
    }
    if (name != "report") return PyErr_Format(PyExc_AttributeError, "%s", name.data());
    const run_report r = report_of_run(core);
    const std::string text = text_report(r), page = html_report(r);
    return Py_BuildValue("NN", str_of(text), str_of(page));
  }

 private:
  bool loops_ = false;   // true from the start to the end of the loop over loop_epoch_
  std::uint64_t loop_epoch_ = 0;
  std::shared_ptr<batch_lease> current_{};   // the delivered batch; null after commit()
  std::span<const slot_tensor> tensors_{};
  std::optional<position> last_{};      // resume point of the last committed batch
  std::array<std::uint64_t, 2> at_{};   // epoch and step of the last committed batch
};

}}}}   // namespace millrace::detail::python
