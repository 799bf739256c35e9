// A running flow: the constructor starts the run, a loop iterates over the batches, the destructor stops the run.
//
//   mr::session run{std::move(flow), {.epochs = 90}};
//   for (auto& [pixels, label] : run) train_step(pixels, label);         // or auto& b: b.stream(), b.position() ...
//
//   class trainer {                                       // the type lists the columns, not the stages
//     mr::session<&example::pixels, &example::label> data_;
//    public:
//     explicit trainer(const std::string& shards) : data_(flow_of(shards), {.epochs = 90}) {}
//   };
//
//   for (std::uint64_t e = 0; e < 90; ++e) {             // or epoch by epoch; workers and buffers stay alive
//     for (auto& [pixels, label] : run.epoch(e)) train_step(pixels, label);
//     validate();
//   }
//
// Order: the order of the batches does not depend on the number of threads.
// Errors: the constructor throws setup_error. If the data of a batch has an error, begin() or ++ of the loop throws
// this error after all earlier batches. The error ends the session: each later call throws a setup_error that repeats
// the message. A new loop over a session that has delivered all its epochs throws setup_error, too.
// Epochs: each epoch is delivered once, in order. epoch(n) starts epoch n and skips the rest of earlier epochs. If a
// loop over epoch n was left early, another loop over epoch n continues with the next batch. A loop over epoch n throws
// setup_error if the session has already passed the end of epoch n. In a resumed run, the epochs before the resume
// point are empty.
// Threads: any thread may request batches, but only one thread at a time. A concurrent request throws setup_error. Any
// thread may call stats() at any time.
// Fork: in a forked child, next() throws setup_error and the destructor does nothing. The child may create a session.
// Lifetime: a loop may be left early; the session keeps running, and a later loop continues with the next batch. A
// session may be destroyed at any moment. Each thread first completes its current claim (samples that a worker
// processes together), read or copy.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/run/engine.hpp>

#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// A flow whose batches have these columns.
template <class Flow, auto... Columns>
concept flow_with_columns = flow_like<Flow> && ends_in_batch<typename Flow::item> &&
                            same_columns(typename columns_of<typename Flow::item>::list{}, column_list<Columns...>{});

struct session_access;

}   // namespace detail

/// One run of a flow whose batches have these columns. Owns threads, memory and batches. Movable, not copyable. If the
/// flow has mix_rows, label_b<...> and lambda are the last two columns.
template <auto... Columns>
class session {
 public:
  using batch = typename detail::batch_type<Columns...>::type;

  /// Builds the pipeline and starts its threads. Returns when the first sample is rendered and all memory is allocated.
  /// Throws setup_error if the flow, the options, the source or the memory budget are incompatible.
  template <detail::flow_with_columns<Columns...> Flow>
  explicit session(Flow flow, session_options options)
      : engine_(new detail::engine<Flow, batch>(std::move(flow), options)) {}
  /// Builds the pipeline with the default options.
  template <detail::flow_with_columns<Columns...> Flow>
    requires std::move_constructible<Flow>
  explicit session(Flow flow) : session(std::move(flow), session_options{}) {}
  // clang-format off
  /// Rejects `session run = flow` at compile time.
  template <detail::flow_with_columns<Columns...> Flow>
  __attribute__((unavailable("millrace: a session is created with '=' here, which hides that it starts threads. Write "
                             "session run{std::move(flow)}.")))
  session(Flow);
  // clang-format on
  /// Rejects option names of other libraries, such as num_workers. The compile error shows Millrace's name of the
  /// option.
  template <detail::flow_with_columns<Columns...> Flow>
  session(Flow, detail::diagnose::session_by_another_name);
  // clang-format off
  /// Rejects a flow with other columns at compile time.
  template <detail::flow_like Flow>
    requires(!detail::flow_with_columns<Flow, Columns...>)
  __attribute__((unavailable("millrace: session<...> and the batch of this flow name different columns. Name the "
                             "columns of batch<...>, in the same order.")))
  explicit session(Flow, session_options = {});
  // clang-format on
  /// Accepts a flow whose error was already reported, so that the compiler reports no further error.
  template <std::size_t Count>
  explicit session(detail::broken_flow_of<Count>, session_options = {});
  session(session&&) noexcept = default;
  session& operator=(session&&) noexcept = default;

  /// Returns the next batch of the run, or an empty batch at the end of the run. Blocks until the batch is ready. If
  /// the batch has an error, throws this error. Throws setup_error if the caller owns the batches of all slots, unless
  /// session_options::leases_released_by_other_threads is set.
  batch next() { return engine().next(); }

  /// Waits at most `time` for the next batch of a loop over `epoch` (`endless`: over all epochs). Returns true if the
  /// loop can continue without a wait, because its next batch, its end or an error is ready. Exception: a new loop over
  /// a later epoch can wait even then, because it first skips the rest of earlier epochs. In the statistics, the
  /// training step ends when wait_for() begins to wait. Without workers, returns true immediately, because the loop
  /// itself prepares the batch.
  bool wait_for(std::chrono::nanoseconds time, std::uint64_t epoch = endless) {
    return running().wait_at_most(time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0, epoch);
  }

  /// Input iterator over the batches of a loop; one batch is current at a time.
  class iterator {
   public:
    using value_type = batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    iterator() = default;
    iterator(session& run, std::uint64_t epoch) : run_(&run), epoch_(epoch) {
      if (!run_->engine().begin(epoch_)) run_ = nullptr;
    }
    batch& operator*() const { return *run_->engine().current(); }
    batch* operator->() const { return run_->engine().current(); }
    /// Releases the current batch, unless the caller has moved it out. Then waits for the next batch.
    iterator& operator++() {
      if (!run_->engine().step(epoch_)) run_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.run_ == nullptr; }

   private:
    session* run_ = nullptr;
    std::uint64_t epoch_ = endless;   // endless: do not stop between epochs
  };

  /// Starts a loop over the rest of the run, and waits for the first batch. Throws setup_error if the run is over.
  iterator begin() { return {*this, endless}; }
  std::default_sentinel_t end() const { return {}; }

  /// The batches of one epoch, as a range. Prefetching continues across the ends of epochs.
  class epoch_range {
   public:
    epoch_range(session& run, std::uint64_t epoch) : run_(&run), epoch_(epoch) {}
    iterator begin() const { return {*run_, epoch_}; }
    std::default_sentinel_t end() const { return {}; }

   private:
    session* run_;
    std::uint64_t epoch_;
  };
  /// Returns the batches of epoch `number`, counted from 0. begin() of the range throws setup_error if the session has
  /// already passed the end of that epoch.
  epoch_range epoch(std::uint64_t number) { return {*this, number}; }

  /// Returns the number of slots. For each batch, slot() is less than this number.
  std::size_t slots() const { return running().core().slots(); }
  /// Returns the number of batches in an epoch; `endless` if epochs have no end. The result is the same on all ranks.
  /// The result is empty if an epoch is one pass over a source without an index, because the number of its samples is
  /// unknown.
  std::optional<std::uint64_t> epoch_batches() const {
    const std::uint64_t batches = running().order().numbers().epoch_batches;
    return batches > 0 ? std::optional(batches) : std::nullopt;
  }
  /// Returns the shard, key and offset of the sample at `position` of an epoch. Positions count the samples of all
  /// ranks together. Throws setup_error if the source has no index.
  error_location locate(std::uint64_t epoch, std::uint64_t position) const {
    return running().order().locate(epoch, position);
  }
  /// Returns the measured shuffle quality of this rank's samples so far, and the expected quality. Any thread may call
  /// this function. Throws setup_error unless the flow has exactly one source and that source has an index.
  shuffle_statistics shuffle_quality() const { return running().order().shuffle_quality(); }
  /// Returns the counters of the run, at low cost. Any thread may call this function.
  run_stats stats() const { return running().core().stats(); }
  /// Returns all metrics since the start of the run, for a report (measure/values/flow_statistics.hpp). Any thread may
  /// call this function at any time. A call costs 0.2 to 0.5 ms, because it queries the system about each thread.
  flow_statistics statistics() const { return running().core().statistics(); }
  /// Returns the metrics of statistics() without the first batches, which arrived before the buffers were full.
  flow_statistics statistics_after_warm_up() const { return running().core().statistics_after_warm_up(); }
  /// Returns the current waits of the thread that requests batches and of each stage, one line each. Reports of stalls
  /// (session_options::stalls) contain this text.
  std::string waits() const { return running().core().waits(); }
  /// Returns the recorded timeline: the last 2048 batches, and the last events of each thread.
  timeline events() const { return running().core().events(); }
  /// Returns the text reported at the start: device, threads, shapes and memory.
  const std::string& description() const { return running().core().description(); }
  /// Returns the statistics of session_options::rows as text; empty if this option is not set.
  std::string rows_text() const { return running().core().rows_text(); }

 private:
  friend struct detail::session_access;
  detail::engine_base& running() const {
    if (!engine_) detail::engine_base::throw_moved_from();
    return *engine_;
  }
  detail::batch_engine<batch>& engine() const { return static_cast<detail::batch_engine<batch>&>(running()); }

  detail::owner<detail::engine_base, detail::engine_base::deleter> engine_;   // a batch_engine<batch>
};

template <auto... Members, class Source, class... Stages>
session(detail::flow<detail::batched<Members...>, Source, Stages...>, session_options = {}) -> session<Members...>;
template <auto... Members, class Source, class... Stages>
session(detail::flow<detail::batched<Members...>, Source, Stages...>, detail::diagnose::session_by_another_name)
    -> session<Members...>;
template <auto Pixels, auto Label, auto... Members, class Source, class... Stages>
session(detail::flow<detail::mixed_batched<Pixels, Label, Members...>, Source, Stages...>, session_options = {})
    -> session<Members..., label_b<Label>, lambda>;

namespace detail {

/// The engine of a session, for reports and for adapters of other languages.
struct session_access {
  template <auto... Columns>
  static auto& engine(const session<Columns...>& of) {
    return of.engine();
  }
};

/// Replaces a session whose flow has an error, so that a loop over the session adds no further compile errors.
template <std::size_t Columns>
class broken_session {
 public:
  broken_batch_of<Columns> next();
  broken_batch_of<Columns>* begin();
  broken_batch_of<Columns>* end();
  broken_session& epoch(std::uint64_t);
  run_stats stats() const;
};

/// The number of columns of a flow that already caused a compile error.
enum class broken_columns : std::size_t {};
/// Marks the session of a flow without batches.
struct no_batches {};

}   // namespace detail

/// The session of a flow that already caused a compile error.
template <detail::broken_columns Count>
class session<Count> : public detail::broken_session<static_cast<std::size_t>(Count)> {
 public:
  session(detail::broken_flow_of<static_cast<std::size_t>(Count)>, session_options = {}) {}
};
template <std::size_t Count>
session(detail::broken_flow_of<Count>, session_options = {}) -> session<detail::broken_columns{Count}>;

/// Rejects a flow without batches at compile time.
template <>
class session<detail::no_batches{}> : public detail::broken_session<0> {
 public:
  // clang-format off
  template <detail::flow_like Flow>
  __attribute__((unavailable("millrace: a session needs a flow of batches, and this one has no batch. End it in "
                             "batch<&item::column, ...>, prefetch or to_device.")))
  session(Flow, session_options = {});
  // clang-format on
};
template <class Item, class Source, class... Stages>
  requires(!detail::ends_in_batch<Item>)
session(detail::flow<Item, Source, Stages...>, session_options = {}) -> session<detail::no_batches{}>;

// feed() runs a session, and passes each batch to a callback.
//
//   mr::feed(std::move(flow), {.epochs = 90}, [&](auto& b) {
//     const auto& [pixels, labels] = b;
//     train_step(pixels, labels, b.stream());
//   });
//
// Order and errors: as for session.
// Threads: `step` runs on the calling thread.

namespace detail {

template <class Flow>
concept is_delivered = ends_in_batch<typename Flow::item> || is_broken_flow<Flow>;

namespace diagnose {

/// Causes the compile error of feed() for a flow without batches.
struct flow_without_batch {
  // clang-format off
  template <flow_like Flow>
    requires(!detail::is_delivered<Flow>)
  __attribute__((unavailable("millrace: feed needs a flow of batches, and this one has no batch. End it in "
                             "batch<&item::column, ...>, prefetch or to_device.")))
  flow_without_batch(const Flow&) {}
  // clang-format on
};

}   // namespace diagnose

}   // namespace detail

/// Runs `flow` and calls `step(batch)` for each batch. Returns the counters of the run.
/// Throws the errors of session and of `step`.
template <detail::flow_like Flow, class Step>
  requires detail::is_delivered<Flow>
run_stats feed(Flow flow, session_options options, Step&& step) {
  session run{std::move(flow), options};
  for (auto& batch : run) step(batch);
  return run.stats();
}
/// Rejects a flow without batches at compile time.
template <class Step>
run_stats feed(detail::diagnose::flow_without_batch, session_options, Step&&) {
  return {};
}

}}   // namespace millrace
