// The implementation of a session: the thin shell that knows the flow's type. It makes the parts of the run, and
// run_core runs them. Nothing here is for users.
#pragma once

#include <millrace/deliver/batch.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/run/run_core.hpp>
#include <millrace/run/session_order.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Flow>
class engine {
  using source = typename Flow::source_type;
  using layout = typename columns_of<typename Flow::item>::type;

 public:
  using batch = typename columns_of<typename Flow::item>::batch;
  using planned = typename planned_run_of<source>::type;

  engine(Flow flow, const session_options& options)
      : engine(std::move(flow), facts_of(flow), options) {}

  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() {
    current_.release();
    core_.shut_down();
  }

  batch* current() noexcept { return &current_; }
  bool begin(std::uint64_t epoch) { return core_.begin(current_, epoch); }
  bool step(std::uint64_t epoch) { return core_.step(current_, epoch); }
  batch next(bool stop_at_epoch) {
    return {builder_.layout(), core_.next(stop_at_epoch)};
  }

  const run_core& core() const noexcept { return core_; }
  const planned& planned_order() const noexcept { return *planned_; }

 private:
  [[gnu::cold]] engine(Flow&& flow, const flow_facts& facts, const session_options& options)
      : core_(options, facts.settings),
        source_(std::move(flow.source)),
        planned_(planned_run_for(source_, facts, {.session = options, .budget_bytes = core_.budget_bytes()})),
        names_(names_for(facts)),
        damaged_(damage_rule_for(facts, options)),
        builder_({.seed = flow.seed,
                  .workers = core_.threads().max_workers(),
                  .arena = core_.arena(),
                  .shuffle_bytes = core_.budget_bytes(),
                  .borders = planned_->borders(),
                  .numbers = planned_->numbers(),
                  .names = names_.get(),
                  .damaged = &damaged_},
                 core_.host_slots()) {
    auto& first = builder_.template build<typename source::item>(skip_planned_stages(std::move(flow.stages)));
    read_stage_ = planned_->read(source_,
                                 {.threads = core_.threads().max_reads(),
                                  .epochs = options.epochs,
                                  .read_ahead_bytes = core_.read_ahead_bytes(),
                                  .window_bytes = core_.budget_bytes(),
                                  .lost = core_.lost()},
                                 first);
    if (names_) read_stage_->name_samples(names_);
    if (options.on_damage.policy != damage::fail) read_stage_->go_on_from_damage();
    core_.start({.order = planned_.get(), .read = read_stage_.get(), .segments = builder_.nodes(),
                 .last = &builder_.last(),
                 .damaged = &damaged_});
    current_ = batch(builder_.layout(), {});
  }

  // The parts use the arena and the slots of the core, and the read stage uses the source and the order.
  run_core core_;
  source source_;
  const std::unique_ptr<planned> planned_;
  const std::shared_ptr<sample_names> names_;   // null: batches have no keys
  const damage_rule damaged_;
  pipeline_builder<layout> builder_;
  std::unique_ptr<read_stage> read_stage_;
  batch current_;
};

}}}  // namespace millrace::detail
