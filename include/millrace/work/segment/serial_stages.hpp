// Stages that run on one thread, with the interface that serial_segment requires: push(sample, out), end_epoch(out).
//
//   stateful_expanding_stage<clip, expand_stage<windows_of>>   an expanding stage with a non-const push or a finish
//   shuffling_segment_stage<clip>                              a shuffle that does not follow the source directly
//
// A stage appends its results to the vector `out`. The segment (the part of the pipeline that runs the stage) removes
// them from `out`.
// Errors: push() throws setup_error if a stage emits too many items, or if the shuffle buffer exceeds its budget.
// Exceptions of the user's stage are passed on. Threads: one thread at a time.
#pragma once

#include <millrace/item/owner.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An expanding stage that has state, or that emits items at the end of an epoch.
template <class In, class Stage>
class stateful_expanding_stage {
  using C = decltype(Stage::expanding);

 public:
  using output = typename C::output;
  static constexpr const char* name = "expand";
  static constexpr bool one_for_one = false;

  /// `names` creates the names of the outputs; null if outputs need no names.
  explicit stateful_expanding_stage(Stage stage, sample_names* names = nullptr)
      : stage_(std::move(stage)), names_(names) {}

  /// Runs the stage on a sample and appends its outputs to `out`.
  void push(sample<In> s, std::vector<sample<output>>& out) {
    std::uint64_t buffered = s.held;
    if constexpr (has_fill_level<C>)
      buffered = !begun_ || s.ordinal != last_.ordinal || s.epoch != last_.epoch ? stage_.expanding.fill_level()
                                                                                 : last_.held;
    begun_ = true;
    last_ = sample<In>{
        .epoch = s.epoch, .pass = s.pass, .id = s.id, .ordinal = s.ordinal, .held = buffered, .origin = s.origin};
    children_ = 0;
    outputs_.clear();
    bounded_segment_emitter<output> emit(outputs_, stage_.max_outputs(std::as_const(*s.item)));
    stage_.expanding.push(std::move(*s.item), emit);
    append_outputs(out);
  }

  /// Calls finish() of the stage, if it has one, and appends its outputs to `out`.
  void end_epoch(std::vector<sample<output>>& out) {
    if constexpr (finishes<C>) {
      outputs_.clear();
      unbounded emit{&outputs_};
      stage_.expanding.finish(emit);
      append_outputs(out);
    }
  }

 private:
  /// The emitter of finish(). The emitter accepts any number of items, because the stage already stores these items in
  /// memory.
  struct unbounded {
    std::vector<output>* outputs;
    void operator()(output item) { outputs->push_back(std::move(item)); }
  };

  void append_outputs(std::vector<sample<output>>& out) {
    for (output& item : outputs_) {
      auto& s = out.emplace_back();
      s.item.emplace(std::move(item));
      s.epoch = last_.epoch;
      s.pass = last_.pass;
      s.ordinal = last_.ordinal;
      s.held = last_.held;
      s.origin = names_ && renames_outputs<C> ? names_->child(last_.origin, children_) : last_.origin;
      s.id = child_id(last_.id, children_++);
    }
  }

  Stage stage_;
  sample_names* names_;
  sample<In> last_;   // the last input, without its item
  bool begun_ = false;
  std::uint64_t children_ = 0;
  std::vector<output> outputs_;
};

/// A shuffle after other stages: a buffer whose size is limited by the window and by `max_bytes`.
template <class T>
class shuffling_segment_stage {
 public:
  using output = T;
  static constexpr const char* name = "shuffle";
  static constexpr bool one_for_one = true;

  explicit shuffling_segment_stage(const shard_order& order, std::size_t max_bytes)
      : plan_(make_owner<shard_order>(order)), order_(*plan_), max_bytes_(max_bytes) {}

  /// Adds a sample and appends to `out` the samples that are ready. If the buffer exceeds its budget, calls
  /// jitter_order::release(), and throws setup_error if that returns false.
  void push(sample<T> s, std::vector<sample<T>>& out) {
    order_.push(std::move(s));
    if (order_.held_bytes() > max_bytes_ && !order_.release())
      throw setup_error("the shuffle buffer exceeds its budget: got " + std::to_string(order_.held_bytes()) +
                            " bytes in " + std::to_string(order_.size()) + " items, expected at most " +
                            std::to_string(max_bytes_) + " bytes",
                        "Choose a smaller window, or a larger session_options::memory_bytes");
    while (order_.ready()) out.push_back(order_.pop());
  }
  /// Appends all buffered samples to `out`. Throws the setup_error of jitter_order::end_epoch().
  void end_epoch(std::vector<sample<T>>& out) {
    order_.end_epoch();
    while (order_.ready()) out.push_back(order_.pop());
    order_.begin_epoch();
  }

 private:
  owner<shard_order>
      plan_;   // on the heap, because order_ refers to the plan, and a shuffling_segment_stage may be moved
  jitter_order<T> order_;
  std::size_t max_bytes_;
};

}}}   // namespace millrace::detail
