// A segment (stages that run together) in the middle of a flow. The segment runs maps, and optionally an expanding
// stage, on many samples concurrently.
//
//   mr::detail::fused_maps<clip> maps;                   // empty: the flow has no map() before expand
//   auto stage = mr::expand(windows_of{.frames = 8});
//   mr::detail::parallel_segment<decltype(maps), decltype(stage)> middle(
//       maps, stage, {.max_workers = 8, .workers = &pool, .capacity = 64}, next.entrance());
//
// Results are passed on in order. Each ticket (number of a sample) gets a buffer for its results before its stages run.
// Therefore workers never wait for space. A ticket is committed when its results are passed on to the next segment. At
// most `capacity` tickets are claimed but not yet committed. The worker that completes the oldest ticket commits this
// ticket and the completed tickets that directly follow. If the next segment has no space, the remaining tickets are
// committed when it reports space. Errors: the error of a sample is passed on in place of the sample, with shard, key
// and stage.
// Threads: workers call run(); one producer at a time uses the entrance. Lifetime: the next segment must outlive this
// segment.
#pragma once

#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/work/schedule/worker_segment.hpp>
#include <millrace/work/segment/fused_maps.hpp>
#include <millrace/work/segment/sample_names.hpp>
#include <millrace/work/segment/stage_passages.hpp>
#include <millrace/work/segment/ticket_input.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Indicates a segment without an expanding stage.
struct no_expanding_stage {};

template <class Maps, class Expanding>
struct segment_output {
  using type = typename Expanding::template out<typename Maps::output>;
};
template <class Maps>
struct segment_output<Maps, no_expanding_stage> {
  using type = typename Maps::output;
};

/// The emitter of an expanding stage. Throws setup_error if the stage emits more items than its bound. The bound is
/// expand_options::max_outputs if it is set. Otherwise the stage's max_outputs() returns the bound.
template <class Output>
class bounded_segment_emitter {
 public:
  bounded_segment_emitter(std::vector<Output>& outputs, const output_bound& most) : outputs_(&outputs), most_(most) {
    outputs.reserve(most.promised ? most.count : std::min<std::size_t>(most.count, 64));
  }
  void operator()(Output item) {
    if (outputs_->size() == most_.count) throw_too_many();
    outputs_->push_back(std::move(item));
  }

 private:
  [[noreturn]] MILLRACE_RARE void throw_too_many() const {
    const std::string most = std::to_string(most_.count);
    if (most_.promised)
      throw setup_error("an expanding stage emitted too many items for this input: got more than " + most +
                            ", expected at most " + most + ", as its max_outputs() returned",
                        "Return a larger number from max_outputs()");
    throw setup_error("an expanding stage emitted too many items for this input: got more than " + most +
                          ", expected at most " + most + ", the bound of expand(stage, {.max_outputs = " + most + "})",
                      "Raise expand_options::max_outputs");
  }

  std::vector<Output>* outputs_;
  output_bound most_;
};

/// True if the outputs of a stage get new names. False if the stage passes on its inputs.
template <class Stage>
inline constexpr bool renames_outputs = !requires { typename Stage::keeps_name_mark; };

/// Runs `Maps`, then the stage `Expanding`, on workers.
template <class Maps, class Expanding>
class parallel_segment final : public worker_segment, public space_listener {
 public:
  using input = typename Maps::input;
  using output = typename segment_output<Maps, Expanding>::type;

  struct options {
    std::size_t max_workers = 1;
    worker_executor* workers = nullptr;
    std::size_t capacity = 64;          ///< maximum number of tickets that are claimed but not committed
    sample_names* names = nullptr;      ///< creates the names of the outputs; null if outputs need no names
    stage_passage* passage = nullptr;   ///< counts of the expanding stage; null if it never drops samples
  };

  parallel_segment(Maps chain, Expanding expanding, options o, sample_sink<output>& next)
      : worker_segment(
            {.name = own_name, .span_name = own_name, .workers = o.workers, .claims = {.max_workers = o.max_workers}}),
        maps_(std::move(chain)),
        expanding_(std::move(expanding)),
        next_(&next),
        names_(o.names),
        passage_(o.passage),
        input_({.capacity = 2 * o.capacity}),
        results_(o.capacity) {
    input_.connect(*dispatcher_);
    next.set_listener(this);
  }

  /// Returns the sink into which the producer puts samples.
  sample_sink<input>& entrance() noexcept { return input_; }

  /// Runs the stages on one claim.
  void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept override {
    const trace_range work(own_name);
    std::size_t bytes = 0;
    for (std::uint64_t ticket = first; ticket < first + count; ++ticket) {
      dispatcher_->times(worker).at(ticket);
      result& r = results_[ticket % results_.size()];
      r.source = input_.take(ticket, bytes);
      r.source.keep_origin();
      r.outputs.clear();
      r.names.clear();
      std::size_t map_at_work = 0;
      try {
        if (r.source.what == sample<input>::kind::item) make_outputs(r, scratch_[worker], map_at_work);
      } catch (...) {
        r.outputs.clear();
        r.source.what = sample<input>::kind::failed;
        r.source.item.set_error(error_located_by([&] {
          error_location at = r.source.origin.where();
          at.stage = map_at_work == expanding_at_work ? "expand" : map_name(map_at_work);
          return at;
        }));
      }
    }
    input_.freed(count, bytes);
  }
  /// Commits completed tickets.
  void publish(std::uint64_t first, std::size_t count) noexcept override {
    for (std::uint64_t ticket = first; ticket < first + count; ++ticket)
      results_[ticket % results_.size()].done.store(true);
    commit();
  }

  void space_freed() noexcept override { commit(); }

  using worker_segment::add_to;
  void add_to(flow_statistics& f, std::uint64_t now_ns) const override {
    stage_statistics s = dispatcher_->statistics(own_name, now_ns);
    if (const std::uint64_t out = outputs_.load(std::memory_order_relaxed); expands && out > 0)
      s.items_per_sample = static_cast<double>(s.items) / static_cast<double>(out);
    f.stages.push_back(std::move(s));
  }
  void start() override { dispatcher_->set_limit(results_.size()); }

 private:
  static constexpr bool expands = !std::is_same_v<Expanding, no_expanding_stage>;
  static constexpr const char* own_name = expands ? "expand" : "map";
  static constexpr std::size_t expanding_at_work = ~std::size_t{0};

  struct result {
    sample<input> source{};
    std::vector<output> outputs{};
    std::vector<record> names{};   // names of the outputs; empty if the outputs have no names
    std::atomic<bool> done{false};
  };

  void make_outputs(result& r, scratch& memory, std::size_t& map_at_work) {
    auto item = maps_(std::move(*r.source.item), {.epoch = r.source.pass, .sample = r.source.id}, memory, map_at_work);
    r.source.item.reset();
    if constexpr (expands) {
      map_at_work = expanding_at_work;
      bounded_segment_emitter<output> emit(r.outputs, expanding_.max_outputs(std::as_const(item)));
      expanding_.expanding.push(std::move(item), emit);
      if constexpr (renames_outputs<decltype(expanding_.expanding)>)
        for (std::size_t i = 0; names_ && i < r.outputs.size(); ++i)
          r.names.push_back(names_->child(r.source.origin, i));
    } else {
      r.outputs.push_back(std::move(item));
    }
  }

  /// Commits completed tickets on one thread at a time. If another thread is already committing, only increments
  /// `requests_`, and the other thread commits the tickets.
  void commit() noexcept {
    if (requests_.fetch_add(1) != 0) return;
    std::uint64_t pending = 1;
    do {
      commit_in_order();
      const std::uint64_t done = pending;
      pending = requests_.fetch_sub(done) - done;
    } while (pending != 0);
  }

  void commit_in_order() noexcept {
    bool any = false;
    while (!ended_) {
      result& r = results_[committed_ % results_.size()];
      if (!r.done.load() || !pass_on_or_end(r)) break;
      r.done.store(false);
      emitted_ = 0;
      ++committed_;
      any = true;
    }
    static_cast<void>(next_->settle());   // writes end marks that were waiting for space
    next_->publish();
    if (any) dispatcher_->set_limit(committed_ + results_.size());
  }

  /// Calls pass_on(). Ends the run if memory is exhausted.
  bool pass_on_or_end(result& r) noexcept {
    try {
      return pass_on(r);
    } catch (...) {
      next_->finish(error_located_by([&] { return r.source.origin.where(); }));
      ended_ = true;
    }
    return true;
  }

  /// Passes on a result. Returns false if the next segment does not have space for the complete result yet.
  bool pass_on(result& r) {
    using kind = typename sample<input>::kind;
    for (; emitted_ < r.outputs.size(); ++emitted_) {
      if (!next_->can_accept()) return false;
      sample<output> s;
      s.item.emplace(std::move(r.outputs[emitted_]));
      s.epoch = r.source.epoch;
      s.pass = r.source.pass;
      s.id = expands ? child_id(r.source.id, emitted_) : r.source.id;
      s.ordinal = r.source.ordinal;
      s.origin = r.names.empty() ? r.source.origin : std::move(r.names[emitted_]);
      next_->put(std::move(s));
      outputs_.store(outputs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    if (r.source.what == kind::item) {
      if (passage_) count(r.outputs.size());
      return true;
    }
    if (!next_->can_accept()) return false;
    if (r.source.what == kind::epoch_end || r.source.what == kind::pass_end) {
      if (passage_) passage_->end_pass();
      if (r.source.what == kind::epoch_end) next_->end_epoch();
      else next_->end_pass();
    } else {
      next_->finish(r.source.item.error());
      ended_ = true;
    }
    return true;
  }

  void count(std::size_t outputs) noexcept {
    passage_->count_input();
    passage_->count_outputs(outputs);
  }

  const Maps maps_;
  const Expanding expanding_;
  sample_sink<output>* const next_;
  sample_names* const names_;
  stage_passage* const passage_;
  ticket_input<input> input_;
  std::vector<result> results_;

  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> outputs_{0};   // number of committed outputs
  // Only the committing thread uses the following members.
  std::uint64_t committed_ = 0;
  std::size_t emitted_ = 0;
  bool ended_ = false;
};

}}}   // namespace millrace::detail
