// Builds the parts of a run whose types depend on the flow. run_core runs these parts. For internal use only.
#pragma once

#include <millrace/deliver/batch.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/run/run_core.hpp>
#include <millrace/run/session_order.hpp>

#include <concepts>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The base class of all engines. Does not depend on the type of the flow, or on the columns of its batches.
class engine_base {
 public:
  engine_base(const session_options& options, const run_settings& settings);
  engine_base(const engine_base&) = delete;
  engine_base& operator=(const engine_base&) = delete;
  virtual ~engine_base();

  const run_core& core() const noexcept { return core_; }
  /// Returns the order of the run.
  const planned_run& order() const noexcept { return *order_; }
  /// Waits at most `time_ns` nanoseconds for the next batch of a loop over `epoch`; see run_core.
  bool wait_at_most(std::uint64_t time_ns, std::uint64_t epoch);
  /// Throws the setup_error for a session that was moved to another object.
  [[noreturn]] static void throw_moved_from();

  /// Destroys an engine, except in a forked child. A child cannot join the threads of its parent, or unlock their
  /// mutexes.
  struct deleter {
    void operator()(engine_base* e) const noexcept;
  };

 protected:
  /// The facts about a flow that the pipeline builder needs in addition to the order.
  struct flow_parts {
    std::uint64_t seed;
    sample_names* names;
    const damage_rule* damaged;
  };
  pipeline_builder_options builder_options(const flow_parts& of, const planned_run& order) const;
  shard_read_stage_options read_options(std::uint64_t epochs);
  struct read_parts {
    planned_run* order;
    read_stage* read;
    const std::shared_ptr<sample_names>& names;
    const damage_rule* damaged;
  };
  /// Passes the sample names to the read stage (the part of the pipeline that reads shards), and starts the run. If the
  /// damage rule tolerates damage, reading continues after damage.
  void start(const read_parts& of, built_segments& segments);

  run_core core_;
  const planned_run* order_ = nullptr;
};

/// The base class of all engines that deliver batches of type `Batch`.
template <class Batch>
class batch_engine : public engine_base {
 public:
  using engine_base::engine_base;

  Batch* current() noexcept { return &current_; }
  bool begin(std::uint64_t epoch) {
    const run_core::call here(core_);
    return core_.begin(current_, epoch);
  }
  bool step(std::uint64_t epoch) {
    const run_core::call here(core_);
    return core_.step(current_, epoch);
  }
  Batch next() {
    const run_core::call here(core_);
    return {*places_, core_.next_of_any_epoch()};
  }

 protected:
  /// Sets the places of the columns in a slot (the memory of a batch). `places` must outlive the engine's batches.
  MILLRACE_RARE void set_places(const typename Batch::places& places) {
    places_ = &places;
    current_ = Batch(places, {});
  }

  Batch current_;

 private:
  const typename Batch::places* places_ = nullptr;
};

template <class Flow, class Batch>
class engine final : public batch_engine<Batch> {
  using base = batch_engine<Batch>;
  using base::core_;
  using source = typename Flow::source_type;
  using layout = typename columns_of<typename Flow::item>::type;

 public:
  engine(Flow flow, const session_options& options) : engine(std::move(flow), facts_of(flow), options) {}

  MILLRACE_RARE ~engine() override {
    core_.wait_for_calls();
    base::current_.release();
    core_.shut_down();
  }

 private:
  owner<planned_run> plan(flow_facts& facts) {
    if constexpr (decides_at_start<source>) core_.start_of_run().enter("reads and builds indexes", true);
    facts.has_index = is_planned<Flow>(source_, core_.options().on_damage.policy != damage::fail, core_.notices());
    const watched_start_steps::step planning(core_.start_of_run(), "plans the order", reads());
    return planned_run_for<Flow>(source_, facts, {.session = core_.options(), .budget_bytes = core_.budget_bytes()});
  }
  /// Returns the read meter of the source, or null if the source has none.
  const read_meter* reads() const {
    if constexpr (requires {
                    { source_.reads() } -> std::convertible_to<const read_meter&>;
                  })
      return &source_.reads();
    else return nullptr;
  }

  [[gnu::cold]] engine(Flow&& flow, flow_facts facts, const session_options& options)
      : base(options, facts.settings),
        source_(std::move(flow.source)),
        planned_(plan(facts)),
        names_(sample_names_for(facts)),
        damaged_(damage_rule_for(facts, core_.options())),
        builder_(this->builder_options({.seed = flow.seed, .names = names_.get(), .damaged = &damaged_}, *planned_),
                 core_.host_slots()) {
    auto& first = builder_.template build<typename source::item>(skip_planned_stages(std::move(flow.stages)));
    {
      const watched_start_steps::step counting(core_.start_of_run(), "determines where reading begins", reads());
      read_stage_ = read_stage_for<Flow>(*planned_, source_, facts, this->read_options(options.epochs), first);
    }
    this->start({.order = planned_.get(), .read = read_stage_.get(), .names = names_, .damaged = &damaged_}, builder_);
    this->set_places(builder_.layout());
  }

  // The order of the members ensures that each member is destroyed before the members that it uses. All members use
  // `core_`, which is destroyed last.
  source source_;
  const owner<planned_run> planned_;
  const std::shared_ptr<sample_names> names_;   // null if batches have no keys
  const damage_rule damaged_;
  pipeline_builder<layout> builder_;
  owner<read_stage> read_stage_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/engine.inl>
#endif
