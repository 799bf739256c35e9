// The implementation of a session: builds the pipeline, starts it in order, delivers batches and shuts it down.
// Nothing here is for users.
#pragma once

#include <millrace/deliver/batch.hpp>
#include <millrace/deliver/new_batch_output.hpp>
#include <millrace/measure/run_figures.hpp>
#include <millrace/measure/timeline.hpp>
#include <millrace/measure/trace_range.hpp>
#include <millrace/measure/trainer_times.hpp>
#include <millrace/run/concurrency.hpp>
#include <millrace/run/flow_stages.hpp>
#include <millrace/run/memory_budget.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/run/session_order.hpp>
#include <millrace/run/session_over.hpp>
#include <millrace/run/stall_watcher.hpp>

#include <unistd.h>

#include <cstdio>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Flow>
class engine {
  using source = typename Flow::source_type;
  using source_item = typename source::item;
  using layout = typename columns_of<typename Flow::item>::type;

 public:
  using batch = typename columns_of<typename Flow::item>::batch;
  using planned = typename planned_run_of<source>::type;

  engine(Flow flow, const session_options& options)
      : options_(checked(options)),
        workers_(options.threads < 0 ? std::max(1U, usable_cores() - 1) : static_cast<unsigned>(options.threads)),
        concurrency_(options_, workers_),
        seed_(flow.seed),
        source_(std::move(flow.source)),
        to_device_(find_stage<to_device_stage>(flow.stages).value_or(to_device({.device = host_device()}))),
        planned_(indexed_run_for(source_, flow, {.session = options_, .budget_bytes = budget_bytes()})),
        plan_(order_for(source_, flow)),
        names_(names_for(flow.stages)),
        output_(new_batch_output(to_device_.options, workers_ > 0)),
        builder_({.seed = seed_, .workers = concurrency_.max_workers(), .arena = make_arena(),
                  .shuffle_bytes = budget_bytes(), .borders = borders_of<source>(*planned_), .names = names_.get()},
               output_->host_slots()) {
    batch_rows_ = std::apply([](const auto&... s) { return (batch_size_of(s) + ...); }, flow.stages);
    if (batch_rows_ == 0) throw setup_error("batch({.size = 0}) makes no batches", "Choose a size of at least 1");
    if (plan_.settings().shards == 0) throw setup_error("the source has no shards", "Give it at least one shard");
    prefetch_ = find_stage<prefetch_stage>(flow.stages).value_or(prefetch_stage{}).options.batches;

    auto& first = builder_.template build<source_item>(skip_planned_stages(std::move(flow.stages)));
    read_ahead_bytes_ =
        options.read_ahead_bytes > 0 ? options.read_ahead_bytes : std::min(std::size_t{256} << 20, budget_bytes() / 4);
    read_stage_ = read_stage_of(source_, *planned_,
                                {.threads = concurrency_.max_reads(),
                                 .epochs = options.epochs,
                                 .read_ahead_bytes = read_ahead_bytes_,
                                 .window_bytes = budget_bytes()},
                                first);
    if (names_) read_stage_->name_samples(names_);
    nodes_ = builder_.nodes();
    nodes_.insert(nodes_.begin(), read_stage_.get());
    nodes_.push_back(output_.get());
    for (pipeline_node* c : nodes_) c->count_into(counts_);
    try {
      start();
    } catch (...) {
      shut_down();
      throw;
    }
  }

  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() {
    current_.release();
    pushed_back_.release();
    shut_down();
  }

  batch* current() noexcept { return &current_; }

  /// Moves on to the first batch of a loop, like step(). Throws setup_error if the run is over and has none for it.
  bool begin(std::uint64_t epoch) {
    const bool was_over = end_.over;
    if (step(epoch)) return true;
    const bool left_early = epoch != endless && epoch == last_epoch_;   // another loop ended at its last batch
    if (end_.over && next_batch_ > 0 && (was_over || !left_early)) throw_finished(options_, epoch);
    return false;
  }

  /// Moves on to the next batch of `epoch` (endless: of any epoch). Returns false at the end.
  bool step(std::uint64_t epoch) {
    current_.release();
    if (epoch == endless) {
      current_ = next(false);
      return static_cast<bool>(current_);
    }
    for (;;) {
      current_ = next(last_epoch_ == epoch);
      if (!current_) return false;
      if (current_.epoch() > epoch) {
        pushed_back_ = std::move(current_);
        return false;
      }
      last_epoch_ = current_.epoch();
      if (last_epoch_ == epoch) return true;
      current_.release();   // left over from an earlier loop that ended before its epoch
    }
  }

  batch next(bool stop_at_epoch) {
    if (getpid() != process_)
      throw setup_error("this session was made before fork(), and its threads stayed behind",
                        "Make the session in the process that uses it");
    end_.check();
    if (pushed_back_) return std::move(pushed_back_);
    if (concurrency_.due(delivered_.load(std::memory_order_relaxed))) {
      flow_figures now = figures();
      if (concurrency_.tune(now, nodes_)) warm_ups_.restart(std::move(now));
    }
    step_range_.end();
    times_.call(steady_now_ns(), output_->arrived_ns(next_batch_ - 1));
    const trainer_times::stores full{output_->ready(), read_stage_->read_ahead_bytes()};
    batch_ring::taken got;
    try {
      got = wait_for(next_batch_, stop_at_epoch);
    } catch (const setup_error&) {
      throw;   // the call was wrong; the session is not over
    } catch (...) {
      fail(std::current_exception());
    }
    using kind = trainer_times::kind;
    times_.answer(steady_now_ns(), got.what == batch_ring::outcome::ready       ? kind::batch
                                   : got.what == batch_ring::outcome::epoch_end ? kind::pause : kind::end,
                                     full);
    if (got.what != batch_ring::outcome::ready) {
      if (got.what == batch_ring::outcome::end) end_of_run();
      end_.over = end_.over || got.what == batch_ring::outcome::end;
      return {};
    }
    output_->host_slots().forget_epochs_before(next_batch_++);
    batch out(output_, got.batch, *layout_, to_device_.options.stream, account_for(got.batch));
    if (got.batch.error) {
      out.release();
      fail(got.batch.error);
    }
    delivered_.fetch_add(1, std::memory_order_relaxed);
    samples_.fetch_add(out.size(), std::memory_order_relaxed);
    warm_ups_.passed(delivered_.load(std::memory_order_relaxed), [&] { return figures(); });
    step_range_.start("batch", got.batch.batch);
    tell_news(counts_, options_.announce);
    return out;
  }

  run_stats stats() const {
    run_stats s;
    s.batches = delivered_.load(std::memory_order_relaxed);
    s.samples = samples_.load(std::memory_order_relaxed);
    s.wait_ns = times_.wait_ns();
    s.step_ns = times_.step_ns();
    s.first_batch_ns = times_.first_batch_ns();
    s.worker_busy_ns = shards_last_->tickets().busy_ns();
    if constexpr (has_index<source>) {
      s.digest = planned_->account().digest();
      s.dropped_last = planned_->account().dropped();
    }
    read_stage_->add_to(s);
    s.workers = workers_;
    s.host_slots = output_->host_slots().count();
    s.ready_slots = output_->host_slots().ready();
    s.slot_bytes = slot_bytes_;
    s.counts = counts_.counts();
    if constexpr (requires { source_.delivered(*planned_, s.batches); })
      s.sources = source_.delivered(*planned_, s.batches);
    return s;
  }
  flow_figures figures() const {
    flow_figures f;
    const std::uint64_t now = times_.clock(steady_now_ns());
    f.batches = delivered_.load(std::memory_order_relaxed);
    f.samples = samples_.load(std::memory_order_relaxed);
    f.batch_samples = batch_rows_;
    f.host_slots = output_->host_slots().count();
    f.device_slots = output_->backend().leases_host_slots() ? 0 : output_->lease_slots();
    f.read_ahead_bytes = read_ahead_bytes_;
    for (const pipeline_node* c : nodes_) c->add_to(f, now);
    times_.add_to(f, now);
    complete(f, process_figures::now() - at_start_);
    return f;
  }
  flow_figures figures_after_warm_up() const { return warm_ups_.without(figures()); }
  /// Returns what the trainer and each pipeline node wait for now, one line each, the trainer first.
  std::string waits() const {
    const std::uint64_t now = steady_now_ns();
    std::string text = times_.waits(now);
    for (std::size_t i = nodes_.size(); i-- > 0;)
      if (const std::string line = nodes_[i]->waits(now); !line.empty()) text += "\n" + line;
    return text;
  }
  timeline events() const {
    timeline t;
    for (const pipeline_node* c : nodes_) c->add_to(t, times_.started_ns());
    times_.add_to(t);
    return t;
  }
  std::size_t slots() const noexcept { return output_->lease_slots(); }
  const planned& planned_order() const noexcept { return *planned_; }
  const std::string& description() const noexcept { return description_; }

 private:
  /// Returns a batch's origin; called once per batch, in order. An accounting violation becomes the batch's error.
  typename batch::origin account_for(ready_batch& b) const noexcept {
    try {
      if constexpr (has_index<source>) {
        if (!b.error) return {planned_->first_step(), planned_->global_rows(b.batch), planned_->deliver(b)};
      } else {
        b.epoch = planned_->epoch_of(b.batch, b.epoch);
        if (!b.error) return {planned_->first_step(), planned_->global_rows(b.rows), planned_->after(b)};
      }
    } catch (...) {
      b.error = std::current_exception();
    }
    return {};
  }
  void end_of_run() {
    if constexpr (has_index<source>) try {
        planned_->finish();
      } catch (...) {
        fail(std::current_exception());
      }
  }
  [[noreturn]] void fail(std::exception_ptr why) {
    end_.error = std::move(why);
    shut_down();
    end_.raise();
  }

  executor* make_arena() {
    if (workers_ > 0) arena_ = new_arena_executor(concurrency_.max_workers());
    return arena_.get();
  }

  std::size_t budget_bytes() const {
    return options_.memory_bytes > 0 ? options_.memory_bytes : usable_memory_bytes() / 4;
  }

  /// Reads the sample at position 0, learns its shapes and allocates every slot; only then workers may use the slots.
  void start() {
    times_.start(steady_now_ns());
    shards_last_ = &builder_.last();
    layout_ = &builder_.layout();
    if constexpr (requires { source_.report(counts_); }) source_.report(counts_);
    concurrency_.open(nodes_);
    for (pipeline_node* c : nodes_)
      if (c != output_.get()) c->start();
    wait_for_first_sample();
    try {
      shards_last_->probe();
    } catch (const setup_error&) {
      throw;
    } catch (...) {
      end_.error = std::current_exception();   // the error of the first batch: next() throws it
      shut_down();
      return;
    }
    allocate();
    output_->start();
    output_->set_listener(shards_last_);
    shards_last_->open_slots();
    announce();
    if (options_.stalls.after_ns > 0)
      watcher_ = std::make_unique<stall_watcher>(options_.stalls, times_, [this] { return waits(); });
  }

  void wait_for_first_sample() {
    dispatcher& tickets = shards_last_->tickets();
    if (workers_ == 0) {
      while (tickets.available() == 0 && advance_any()) {
      }
      return;
    }
    tickets.wait_for_available();
  }

  void allocate() {
    slot_bytes_ = layout_->batch_bytes();
    const bool copies = !output_->backend().leases_host_slots();
    if (prefetch_ == 0)
      prefetch_ = std::clamp<std::size_t>((std::size_t{256} << 20) / std::max<std::size_t>(slot_bytes_, 1), 2, 4) +
                  (std::max(concurrency_.max_workers(), 1U) - 1) / batch_rows_;
    memory_budget m{.budget_bytes = budget_bytes(),
                    .slot_bytes = slot_bytes_,
                    .host_slots = prefetch_ + (copies ? 0 : 1),   // one more: the slot that the step uses
                    .device_slots = copies ? std::max<std::size_t>(1, to_device_.options.slots) : 0,
                    .device_memory_apart = output_->backend().memory() == memory_kind::device,
                    .batch_rows = batch_rows_,
                    .read_ahead_bytes = read_ahead_bytes_,
                    .chunk_bytes = read_stage::chunk_bytes, .chunk_samples = read_stage::chunk_samples,
                    .window = held_window_of<source>(*planned_)};
    if constexpr (has_index<source>) m.neighbor_bytes = planned_->held_bytes();
    if (read_stage_->samples_read() > 0)
      m.sample_bytes = static_cast<double>(read_stage_->bytes_read()) / double(read_stage_->samples_read());
    m.check();
    concurrency_.start(m.max_reads());
    output_->allocate({.host_slots = m.host_slots, .rows = batch_rows_, .batch_bytes = slot_bytes_,
                         .keys = names_ != nullptr});
    description_ = "millrace: " + output_->backend().name() + ", " + std::to_string(workers_) + " workers, " +
                   std::to_string(read_stage_->threads()) + " I/O threads" + concurrency_.describe() + "; " +
                   layout_->describe() + "; memory: " + m.describe();
    if constexpr (!has_index<source>) description_ += planned_->describe();
    else if constexpr (requires { source_.describe(*planned_); }) description_ += "; " + source_.describe(*planned_);
    if (const std::string notice = planned_->notice(); !notice.empty()) description_ += "\nmillrace: " + notice;
  }

  /// Runs while the workers already render the first batches.
  void announce() {
    if (!options_.announce) return;
    if constexpr (requires { planned_->shuffle_advice(); }) description_ += planned_->shuffle_advice();
    std::fprintf(stderr, "%s\n", description_.c_str());
    tell_news(counts_, options_.announce);
  }

  /// Without threads: advances the first pipeline node that can, from the trainer upstream. Returns false if none can.
  bool advance_any() {
    for (std::size_t i = nodes_.size(); i-- > 0;)
      if (nodes_[i]->advance()) return true;
    return false;
  }

  batch_ring::taken wait_for(std::uint64_t batch, bool stop_at_epoch) {
    using outcome = batch_ring::outcome;
    const trace_range waiting("wait", batch);
    for (;;) {
      const batch_ring::taken got = output_->take(batch, stop_at_epoch);
      if (got.what != outcome::not_yet) return got;
      if (!options_.leases_released_by_other_threads && output_->waits_for_lease(batch))
        throw_all_leased(*output_, to_device_.options.fixed_slots ? std::optional(batch) : std::nullopt);
      if (workers_ == 0) {
        if (!advance_any()) return {outcome::stopped, {}};
      } else {
        output_->bell().wait([&] { return output_->can_take(batch, stop_at_epoch); });
      }
    }
  }

  void shut_down() noexcept {
    if (down_) return;
    down_ = true;
    watcher_.reset();
    for (pipeline_node* c : nodes_) c->stop();
    output_->host_slots().stop();
    for (pipeline_node* c : nodes_) c->join();
    tell_news(counts_, options_.announce);
    output_->set_listener(nullptr);
  }

  const session_options options_;
  const unsigned workers_;
  concurrency concurrency_;
  const std::uint64_t seed_;
  const pid_t process_ = getpid();
  source source_;
  const to_device_stage to_device_;
  const std::unique_ptr<planned> planned_;
  const shard_order plan_;
  const std::shared_ptr<sample_names> names_;   // null: batches have no keys
  event_counts counts_;
  std::unique_ptr<executor> arena_;
  const std::shared_ptr<batch_output> output_;
  pipeline_builder<layout> builder_;
  std::unique_ptr<read_stage> read_stage_;
  std::vector<pipeline_node*> nodes_;   // in the order of the flow
  final_segment* shards_last_ = nullptr;
  const layout* layout_ = nullptr;
  std::size_t batch_rows_ = 0, prefetch_ = 0, slot_bytes_ = 0, read_ahead_bytes_ = 0;
  std::string description_;
  bool down_ = false;

  // Used by the trainer only.
  batch current_, pushed_back_;
  std::uint64_t next_batch_ = 0;
  std::uint64_t last_epoch_ = endless;   // epoch of the last batch in a loop over one epoch
  run_end end_;
  trace_span step_range_;   // from a delivery to the next call of next()

  std::atomic<std::uint64_t> delivered_{0}, samples_{0};
  trainer_times times_;
  warm_up_figures warm_ups_;
  std::unique_ptr<stall_watcher> watcher_;
  const process_figures at_start_ = process_figures::now();
};

}}}  // namespace millrace::detail
