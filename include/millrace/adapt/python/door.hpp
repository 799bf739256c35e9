// The interface between Python objects and a session of any flow. The code that depends on the type of the flow is only
// in the class door_of.
//
//   std::unique_ptr<door> run = ...;   delivered batch;
//   while (!run->wait(50'000'000, 0)) check_signals();
//   if (run->next({.epoch = 0, .starts = true}, batch)) use(batch.columns);
//
// Only get() calls Python. All other functions run without Python's global lock.
// Errors and threads: as for session. Any thread may destroy a column.
#pragma once

#include <millrace/adapt/python/values.hpp>
#include <millrace/adapt/tensors/dlpack_structs.hpp>
#include <millrace/adapt/tensors/shared_batch.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/session_report.hpp>
#include <millrace/run/session.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {
namespace [[gnu::visibility("hidden")]] python {

/// Notices that wait until the thread of next() passes them to Python.
struct notice_queue {
  std::mutex mutex{};
  std::vector<notice> notices{};
};

/// A batch and the GPU streams that use it. The batch is released when the last tensor in its memory is destroyed.
class batch_owner {
 public:
  explicit batch_owner(std::shared_ptr<batch_lease> b) : batch_(std::move(b)) {}
  /// Declares that `stream` uses the batch. Does nothing if this stream was declared before.
  void used_on(stream_view stream) {
    if (batch_->device_ordinal() < 0 || stream == batch_->stream() ||
        std::find(streams_.begin(), streams_.end(), stream) != streams_.end())
      return;
    batch_->also_used_on(stream);
    streams_.push_back(stream);
  }

 private:
  std::shared_ptr<batch_lease> batch_;
  std::vector<CUstream_st*> streams_;
};

/// A column of a batch. If `memory` is null, the bytes are in the slot of the batch. Otherwise `memory` owns a copy of
/// them.
struct column {
  dlpack_column tensor{};
  std::size_t bytes = 0;
  std::shared_ptr<batch_owner> batch{};
  std::shared_ptr<void> memory{};
};

/// A batch for Python.
struct delivered {
  std::vector<column> columns{};
  std::optional<std::vector<std::string>> keys{};
  bool copied = false;      ///< whether all columns are copies, because tensors keep nearly all slots in use
  std::uint64_t epoch = 0, step = 0;
  position next{};
};

/// A request for the next batch of a loop over `epoch`.
struct request {
  std::uint64_t epoch = 0;
  bool starts = false;      ///< whether the loop begins
  bool copies = false;      ///< whether all columns may be copied to new memory, which releases the slot
  /// A stream that uses the batch. If empty, a later call of __dlpack__() passes the stream.
  std::optional<stream_view> stream{};
};

/// A session, regardless of the type of its flow.
class door {
 public:
  /// Columns of at most this size are always copied. Otherwise a small tensor that the program keeps, such as the
  /// labels, would keep the complete slot of the batch in use, including its images.
  static constexpr std::size_t copied_bytes = std::size_t{64} << 10;

  virtual ~door() = default;
  virtual bool wait(std::uint64_t time_ns, std::uint64_t epoch) = 0;
  /// Stores the next batch in `out`. Returns false at the end of the epoch. Until commit() is called, further calls
  /// return the same batch, so that a failed call can be repeated.
  virtual bool next(const request& r, delivered& out) = 0;
  virtual void commit() noexcept = 0;
  /// Returns the property `name` as a new Python object.
  virtual PyObject* get(const char* name) const = 0;
};

/// Returns the last name in a C++ expression: "pixels" for "example::pixels", "label_b" for "label_b()".
inline std::string last_name(std::string_view spelling) {
  if (spelling.ends_with("()")) spelling.remove_suffix(2);
  return std::string(spelling.substr(spelling.rfind(':') + 1));   // without a colon, npos + 1 is 0
}

/// Copies a column to new memory.
inline void copy_column(column& c) {
  constexpr std::align_val_t line{64};
  c.memory = {::operator new(c.bytes, line), [](void* memory) { ::operator delete(memory, line); }};
  std::memcpy(c.memory.get(), c.tensor.data, c.bytes);
  c.tensor.data = c.memory.get();
  c.batch.reset();
}

inline PyObject* stats_of(const run_stats& s) {
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d}", "batches", s.batches, "samples", s.samples,
                       "wait_ns", s.wait_ns, "step_ns", s.step_ns, "first_batch_ns", s.first_batch_ns, "dropped_last",
                       s.dropped_last, "replaced", s.replaced, "masked", s.masked, "lost_shards", s.lost_shards,
                       "digest", s.digest, "data_wait_share", s.data_wait_share());
}

template <class Flow>
class door_of final : public door {
  using session_type = decltype(session(std::declval<Flow>(), session_options{}));

 public:
  door_of(Flow flow, const session_options& o) : run_(std::move(flow), o) {}

  bool wait(std::uint64_t t, std::uint64_t epoch) override {
    return has_batch_of(epoch) || run_.wait_for(std::chrono::nanoseconds(t), epoch);
  }
  PyObject* get(const char* word) const override {
    const std::string_view name = word;
    if (name == "names") return to_python(names_);
    if (name == "slots") return to_python(run_.slots());
    if (name == "epoch_batches") return to_python(run_.epoch_batches());
    if (name == "description") return to_python(run_.description());
    if (name == "waits") return to_python(run_.waits());
    if (name == "stats") return stats_of(run_.stats());
    if (name != "report") return raise(PyExc_AttributeError, word);
    const run_report r = report_of(run_);
    const std::string text = text_report(r), page = html_report(r);
    return Py_BuildValue("NN", str_of(text), str_of(page));
  }

  bool next(const request& r, delivered& out) override {
    if (!has_batch_of(r.epoch)) {
      current_ = std::make_shared<counted_batch>(leased_);   // allocated before the iterator returns a batch
      if (r.starts || !at_) at_ = run_.epoch(r.epoch).begin();
      else ++*at_;
      if (*at_ == run_.end()) {
        at_.reset();
        return false;
      }
      current_->set(std::move(**at_));
    }
    const batch& b = *current_->content;
    const bool copies = r.copies && leased_->load() >= run_.slots();
    const auto owner =
        std::make_shared<batch_owner>(std::shared_ptr<batch_lease>(current_, std::addressof(*current_->content)));
    out.epoch = b.epoch();
    out.step = b.step();
    out.next = b.position();
    const bool on_host = b.device_ordinal() < 0;
    out.copied = copies && on_host;
    if (b.has_keys()) out.keys.emplace(b.keys().begin(), b.keys().end());
    if (r.stream) owner->used_on(*r.stream);
    const auto views = tensors_of(b);
    const bool names = names_.size() != std::tuple_size_v<decltype(views)> + b.has_flags();
    if (names) names_.clear();
    const auto add = [&](const auto& view, const char* name) {
      if (names) {
        std::string& last = names_.emplace_back(last_name(name));
        if (last == "lambda") last = "lambda_";
        if (names_.size() > 1 && last == names_[names_.size() - 2])   // the second tensor of a ragged column
          last += view.shape.size() == 2 ? "_sizes" : view.shape[0] == b.size() ? "_lengths" : "_offsets";
      }
      column c{.tensor = dlpack_column_of(view, b.device_ordinal()), .bytes = view.size_bytes(), .batch = owner};
      if (on_host && (copies || c.bytes <= copied_bytes)) copy_column(c);
      out.columns.push_back(std::move(c));
    };
    std::apply([&](const auto&... view) { (add(view, view.name), ...); }, views);
    if (b.has_flags()) add(b.valid(), "valid");
    return true;
  }
  void commit() noexcept override { current_.reset(); }

 private:
  using batch = typename session_type::batch;
  /// A batch. `count` includes it while its slot is in use.
  struct counted_batch {
    std::shared_ptr<std::atomic<std::size_t>> count;
    std::optional<batch> content{};

    explicit counted_batch(std::shared_ptr<std::atomic<std::size_t>> c) : count(std::move(c)) {}
    counted_batch(const counted_batch&) = delete;
    ~counted_batch() {
      if (!content) return;
      content.reset();
      count->fetch_sub(1);
    }
    void set(batch&& b) noexcept {
      content.emplace(std::move(b));
      count->fetch_add(1);
    }
  };

  bool has_batch_of(std::uint64_t epoch) const {
    return current_ && current_->content && current_->content->epoch() == epoch;
  }

  const std::shared_ptr<std::atomic<std::size_t>> leased_ =   // the number of batches that tensors keep in use
      std::make_shared<std::atomic<std::size_t>>(0);
  session_type run_;
  std::optional<typename session_type::iterator> at_;
  std::shared_ptr<counted_batch> current_;   // until commit()
  std::vector<std::string> names_;   // names of the columns; set by the first batch
};

}}}}  // namespace millrace::detail::python
