// A session that Python owns, and its batches.
//
//   while (s.next({.epoch = 0, .starts = true}) == outcome::waits) check_signals();
//   use(s.columns), s.commit();                  // of running s
//
// Errors: as for session. Threads: one at a time; next() runs without Python's global lock. Any may destroy a column.
#pragma once

#include <millrace/adapt/python/loader.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/session_report.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace [[gnu::visibility("hidden")]] python {

/// Notices that wait until the thread of next() passes them to Python.
struct notice_queue {
  std::mutex mutex{};
  std::vector<notice> notices{};
};

/// A batch and the GPU streams that use it. The batch is released when the last tensor in its memory is destroyed.
class batch_owner {
 public:
  /// `count` includes the batch while its slot is in use.
  explicit batch_owner(std::shared_ptr<std::atomic<std::size_t>> count) noexcept : count_(std::move(count)) {}
  batch_owner(const batch_owner&) = delete;
  ~batch_owner() {
    if (!batch_) return;
    batch_.release();
    count_->fetch_sub(1);
  }
  void own(batch_lease&& b) noexcept {
    batch_ = std::move(b);
    count_->fetch_add(1);
  }
  const batch_lease& batch() const noexcept { return batch_; }
  /// Declares that `stream` uses the batch. Does nothing if this stream was declared before.
  void used_on(stream_view stream) {
    const auto it = std::find(streams_.begin(), streams_.end(), stream.handle);
    if (batch_.device_ordinal() < 0 || stream == batch_.stream() || it != streams_.end()) return;
    batch_.also_used_on(stream);
    streams_.push_back(stream);
  }

 private:
  std::shared_ptr<std::atomic<std::size_t>> count_;
  batch_lease batch_{};
  std::vector<CUstream_st*> streams_{};
};

/// A column of a batch. `owner` is `batch`, or memory with a copy of the bytes.
struct column {
  dlpack_column tensor{};
  std::shared_ptr<void> owner{};
  batch_owner* batch = nullptr;   ///< null for a copy

  void copy() {
    constexpr std::align_val_t line{64};
    std::shared_ptr<void> memory(::operator new(tensor.bytes(), line), [](void* m) { ::operator delete(m, line); });
    tensor.data = std::memcpy(memory.get(), tensor.data, tensor.bytes());
    owner = std::move(memory);
    batch = nullptr;
  }
};

/// A request for the next batch of a loop over `epoch`.
struct request {
  std::uint64_t epoch = 0;
  bool starts = false;   ///< whether the loop begins
  bool copies = false;   ///< whether all columns may be copied to new memory, which releases the slot
  /// A stream that uses the batch. If empty, a later call of __dlpack__() passes the stream.
  std::optional<stream_view> stream{};
};

inline constexpr const char* closed = "millrace: the loader is closed. Start another loop over it.";
enum class outcome { waits, ends, delivers };

/// Calls `act`, which must not throw, without Python's global lock (the GIL).
template <class Act>
void without_gil(const Act& act) {
  PyThreadState* const thread = PyEval_SaveThread();
  act();
  PyEval_RestoreThread(thread);
}

/// Returns the last name in a C++ expression: "pixels" for "example::pixels", "label_b" for "label_b()".
inline std::string last_name(std::string_view spelling) {
  if (spelling.ends_with("()")) spelling.remove_suffix(2);
  return std::string(spelling.substr(spelling.rfind(':') + 1));   // without a colon, npos + 1 is 0
}

/// A session that Python owns.
class running {
 public:
  /// Columns of at most this size are always copied. Otherwise a program that keeps one small tensor (for example, the
  /// labels) would keep the complete slot in use.
  static constexpr std::size_t copied_bytes = std::size_t{64} << 10;
  static constexpr std::uint64_t signal_check_ns = 50'000'000;

  std::unique_ptr<door> run{};   ///< null after _close()
  std::shared_ptr<notice_queue> notices = std::make_shared<notice_queue>();
  bool busy = false;               ///< a thread is in _next()
  std::vector<column> columns{};   ///< of the batch that next() delivers
  bool copied = false;             ///< whether all of them are copies, which release the slot

  ~running() { close(); }
  /// Ends the run and joins its threads.
  void close() noexcept {
    columns.clear();
    current_.reset();
    if (run) without_gil([&]() noexcept { run.reset(); });
  }

  /// Waits for the next batch, at most signal_check_ns. Until commit() is called, later calls return the same batch, so
  /// that a failed call can be repeated.
  outcome next(const request& r) {
    if (!current_ || !current_->batch() || current_->batch().epoch() != r.epoch) {
      if (!run->engine().wait_at_most(signal_check_ns, r.epoch)) return outcome::waits;
      current_ = std::make_shared<batch_owner>(in_use_);   // allocated before the session advances
      const bool starts = r.starts || !loops_;
      if (starts) loop_epoch_ = r.epoch;
      batch_lease* const next = run->advance(loop_epoch_, starts, tensors_);
      loops_ = next != nullptr;
      if (!loops_) return outcome::ends;
      current_->own(std::move(*next));
    }
    const bool on_host = current_->batch().device_ordinal() < 0;
    copied = on_host && r.copies && in_use_->load() >= run->engine().core().slots();
    if (r.stream) current_->used_on(*r.stream);
    columns.clear();
    for (const slot_tensor& tensor : tensors_) {
      column& c = columns.emplace_back(column{tensor.content, current_, current_.get()});
      if (on_host && (copied || tensor.content.bytes() <= copied_bytes)) c.copy();
    }
    return outcome::delivers;
  }
  const batch_lease& batch() const noexcept { return current_->batch(); }
  void commit() {
    last_ = batch().position();
    epoch_ = batch().epoch();
    step_ = batch().step();
    columns.clear();
    current_.reset();
  }

  /// Returns the property `name` as a new Python object. Needs Python's global lock.
  PyObject* get(std::string_view name) const {
    if (name == "epoch") return to_python(epoch_);
    if (name == "step") return to_python(step_);
    if (name == "position") return to_python(last_ ? to_text(*last_) : std::string());
    if (name == "indexed") return to_python(last_ && last_->has_index());
    if (!run) return PyErr_Format(PyExc_ValueError, closed);
    const run_core& core = run->engine().core();
    if (name == "slots") return to_python(core.slots());
    if (name == "description") return to_python(core.description());
    if (name == "waits") return to_python(core.waits());
    if (name == "names") {
      std::vector<std::string> names;
      for (const slot_tensor& tensor : tensors_) names.push_back(last_name(tensor.column) + tensor.suffix);
      return to_python(names);
    }
    if (name == "epoch_batches") return to_python(run->engine().order().numbers().epoch_batches);   // 0: unknown
    if (name == "stats") {
      const run_stats s = core.stats();
      return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d}", "batches", s.batches, "samples", s.samples,
                           "wait_ns", s.wait_ns, "step_ns", s.step_ns, "first_batch_ns", s.first_batch_ns,
                           "dropped_last", s.dropped_last, "replaced", s.replaced, "masked", s.masked, "lost_shards",
                           s.lost_shards, "digest", s.digest, "data_wait_share", s.data_wait_share());
    }
    if (name != "report") return PyErr_Format(PyExc_AttributeError, "%s", name.data());
    const run_report r = report_of_run(core);
    const std::string text = text_report(r), page = html_report(r);
    return Py_BuildValue("NN", str_of(text), str_of(page));
  }

 private:
  std::shared_ptr<std::atomic<std::size_t>> in_use_ = std::make_shared<std::atomic<std::size_t>>(0);
  bool loops_ = false;   // whether the loop over loop_epoch_ has not ended
  std::uint64_t loop_epoch_ = 0;
  std::shared_ptr<batch_owner> current_{};   // until commit()
  std::span<const slot_tensor> tensors_{};
  std::uint64_t epoch_ = 0, step_ = 0;   // of the last batch of commit()
  std::optional<position> last_{};
};

}}}}   // namespace millrace::detail::python
