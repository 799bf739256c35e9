// A running flow. Making one starts it; a loop over it gets the batches; destroying it, at any moment, stops it.
//
//   auto run = mr::session{std::move(flow), {.epochs = 90}};
//   for (auto& b : run) train_step(b.get<&example::pixels>(), b.get<&example::label>(), b.stream());
//
//   for (std::uint64_t e = 0; e < 90; ++e) {             // or epoch by epoch; workers and buffers stay alive
//     for (auto& b : run.epoch(e)) train_step(...);
//     validate();
//   }
//
// Order: the same for every number of threads. Errors: setup_error from the constructor; an error of the data surfaces
// at its batch, after all earlier ones, from ++ or begin(), and ends the session: later calls are a setup_error that
// repeats it. So is a loop over a session whose epochs were all delivered. Threads: one thread pulls; stats() from any.
// Leaving the loop early or destroying the session ends everything within one claim, one read and one copy.
#pragma once

#include <millrace/deliver/batch.hpp>
#include <millrace/measure/timeline.hpp>
#include <millrace/read/shard_read_stage.hpp>
#include <millrace/run/memory_budget.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/run/session_order.hpp>

#include <cstdio>
#include <iterator>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

template <class Item>
struct columns_of;
template <auto... Members>
struct columns_of<batched<Members...>> {
  using type = columns<Members...>;
  using batch = batch_of<Members...>;
};

/// The (last) stage of that type in a tuple, if there is one.
template <class Wanted, class... Stages>
std::optional<Wanted> find_stage(const std::tuple<Stages...>& stages) {
  std::optional<Wanted> found;
  std::apply(
      [&](const auto&... s) {
        const auto look = [&](const auto& one) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, Wanted>) found = one;
        };
        (look(s), ...);
      },
      stages);
  return found;
}

template <class Batch>
std::size_t batch_size_of(const Batch& stage) {
  if constexpr (is_batch<Batch>) return stage.options.size;
  else return 0;
}

}  // namespace detail

template <class Flow>
class session {
  using source = typename Flow::source_type;
  using source_item = typename source::item;
  using layout = typename detail::columns_of<typename Flow::item>::type;

 public:
  using batch = typename detail::columns_of<typename Flow::item>::batch;

  explicit session(Flow flow, session_options options = {})
      : options_(options), engine_(std::make_unique<engine>(std::move(flow), options)) {}
  /// What `session run = flow` is told.
  template <std::same_as<Flow> SameFlow>
  __attribute__((unavailable("millrace: a session is made with '=' here, which hides that it starts threads. Write "
                             "session run{std::move(flow)}.")))
  session(SameFlow);
  session(session&&) noexcept = default;
  session& operator=(session&&) noexcept = default;

  /// The next batch of the run; an empty one at its end. Throws the error that stands in a batch's place.
  batch next() { return engine_->next(false); }

  class iterator {
   public:
    using value_type = batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    iterator() = default;
    iterator(session& run, std::uint64_t epoch) : run_(&run), epoch_(epoch) {
      if (!run_->engine_->begin(epoch_)) run_ = nullptr;
    }
    batch& operator*() const { return *run_->engine_->current(); }
    batch* operator->() const { return run_->engine_->current(); }
    /// Releases the current batch (unless it was moved out) and gets the next one.
    iterator& operator++() {
      if (!run_->engine_->step(epoch_)) run_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.run_ == nullptr; }

   private:
    session* run_ = nullptr;
    std::uint64_t epoch_ = endless;   // endless: do not stop between epochs
  };

  iterator begin() { return {*this, endless}; }
  std::default_sentinel_t end() const { return {}; }

  /// The batches of one epoch. Epochs come in order and are read ahead over the border; what an earlier loop left over
  /// is passed over.
  class epoch_range {
   public:
    epoch_range(session& run, std::uint64_t epoch) : run_(&run), epoch_(epoch) {}
    iterator begin() const { return {*run_, epoch_}; }
    std::default_sentinel_t end() const { return {}; }

   private:
    session* run_;
    std::uint64_t epoch_;
  };
  epoch_range epoch(std::uint64_t number) { return {*this, number}; }

  /// Pieces of memory that batches may lie in; b.slot() counts from 0.
  std::size_t slots() const { return engine_->slots(); }
  /// Of an indexed source: the shard, key and offset of the sample at that position of an epoch, of all ranks together.
  error_location locate(std::uint64_t epoch, std::uint64_t position) const
    requires detail::has_index<source>
  {
    return engine_->planned_order().locate(epoch, position);
  }
  /// Of one indexed source: how well this rank's samples were mixed so far, and were to be. Any thread.
  auto shuffle_quality() const
    requires requires(const typename detail::planned_run_of<source>::type& order) { order.shuffle_quality(); }
  {
    return engine_->planned_order().shuffle_quality();
  }
  /// A few counters, at once.
  run_stats stats() const { return engine_->stats(); }
  /// All that a report is made from (measure/flow_figures.hpp), since the start; and without the first batches, whose
  /// rings were being filled. Any thread, any time; 0.2 to 0.5 ms, for the system is asked about each thread.
  flow_figures figures() const { return engine_->figures(); }
  flow_figures figures_after_warm_up() const { return engine_->figures_after_warm_up(); }
  /// Who waits for whom just now, a line for each stage, as session_options::stalls has it told.
  std::string waits() const { return engine_->waits(); }
  /// What happened when, as far as it is kept: the last 2048 batches, and what each thread did at the end.
  timeline events() const { return engine_->events(); }
  /// What was announced at start.
  const std::string& description() const { return engine_->description(); }

 private:
  class engine;

  session_options options_;
  std::unique_ptr<engine> engine_;
};

template <class Flow>
session(Flow, session_options = {}) -> session<Flow>;

/// What a mistake makes of a session: something that a loop over it adds no error to.
class broken_session {
 public:
  poison next();
  poison* begin();
  poison* end();
  broken_session& epoch(std::uint64_t);
  run_stats stats() const;
};

template <>
class session<broken_flow> : public broken_session {
 public:
  session(broken_flow, session_options = {}) {}
};

template <class Flow>
  requires(!detail::ends_in_batch<typename Flow::item>)
class session<Flow> : public broken_session {
 public:
  __attribute__((unavailable("millrace: a session needs a flow of batches, and this one has no batch. End it in "
                             "batch<&item::column, ...>, prefetch or to_device.")))
  session(Flow, session_options = {});
};

}}  // namespace millrace

#include <millrace/run/engine.hpp>
