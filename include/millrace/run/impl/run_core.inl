// Definitions for run_core.hpp.
#pragma once

#include <millrace/run/run_core.hpp>

#include <millrace/base/numa.hpp>
#include <millrace/deliver/device_batch_output.hpp>
#include <millrace/run/memory_budget.hpp>
#include <millrace/run/session_share.hpp>
#include <millrace/run/user_executor.hpp>

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE run_core::run_core(const session_options& options, const run_settings& settings)
    : options_(checked(options)),
      settings_(settings),
      cores_(options_.threads_near_device ? settings_.device.device.backend()->near_cores() : std::vector<unsigned>{}),
      workers_(options_.threads ? *options_.threads : automatic_workers(options_, cores_)),
      notices_(options_.notice),
      concurrency_(options_, workers_, notices_),
      process_(getpid()),
      budget_bytes_(options_.memory_bytes ? *options_.memory_bytes : automatic_memory(options_)),
      read_ahead_bytes_(options_.read_ahead_bytes.value_or(std::min(std::size_t{256} << 20, budget_bytes_ / 4))),
      damaged_(options_.on_damage, *options_.world),
      lost_(options_.on_damage.shards_at_most),
      arena_(new_worker_executor(options_, concurrency_.max_workers(), cores_, [this] { wake_trainer(); })),
      output_(new_batch_output(settings_.device, workers_ > 0)),
      at_start_(process_statistics::now()) {
  if (settings_.batch_rows == 0)
    throw setup_error("batch() has no rows: got batch({.size = 0}), expected at least 1", "Set a larger size");
  if (settings_.shards == 0) throw setup_error("the source has no shards", "Add at least one shard");
  start_.enter("plans the run");
  if (options_.stalls.least().count() > 0)
    watcher_ = make_owner<stall_watcher>(options_.stalls, times_, [this] { return waits(); }, notices_);
}

MILLRACE_RARE void run_core::start(run_parts parts) {
  try {
    const core_scope here(cores_);   // threads that start now inherit these cores
    connect(std::move(parts));
    start_threads();
    start_.enter("waits for the first sample, which defines the shapes");
    if (!learn_shapes()) return;
    start_.enter("allocates slots");
    allocate();
    open_slots();
    start_.over();
    report_start();
  } catch (...) {
    shut_down();
    throw;
  }
}

MILLRACE_RARE void run_core::connect(run_parts parts) {
  parts_ = std::move(parts);
  nodes_ = parts_.segments;
  nodes_.insert(nodes_.begin(), parts_.read);
  if (options_.rows) {
    rows_ = options_.rows->new_feed({.last = parts_.last,
                                     .batches = &host_slots(),
                                     .numbers = parts_.order->numbers(),
                                     .wakes_trainer = workers_ == 0},
                                    options_.rows);
    nodes_.push_back(rows_.get());
  }
  nodes_.push_back(output_.get());
  for (pipeline_node* c : nodes_) c->count_into(counts_);
  times_.start(steady_now_ns());
  parts_.order->report(counts_);
}

MILLRACE_RARE void run_core::start_threads() {
  concurrency_.open(nodes_);
  for (pipeline_node* c : nodes_)
    if (c != output_.get()) c->start();
  started_.store(true);
}

/// Fixes the shapes by the item at the lowest position that has one. Returns false after an error, which next() throws
/// as the error of the first batch.
MILLRACE_RARE bool run_core::learn_shapes() {
  try {
    for (std::uint64_t position = 0;; ++position) {
      if (!wait_for_sample(position)) throw_no_good_sample(parts_.last->early_damage());
      if (parts_.last->make_early(position)) break;
    }
  } catch (const setup_error&) {
    throw;
  } catch (...) {
    end_.error = parts_.read->explain(std::current_exception());
    shut_down();
    return false;
  }
  return true;
}

MILLRACE_INLINE bool run_core::wait_for_sample(std::uint64_t position) {
  dispatcher& tickets = parts_.last->tickets();
  while (workers_ == 0 && tickets.available() <= position)
    if (!advance_any()) return false;
  if (workers_ == 0 || tickets.wait_for_available(position)) return true;
  if (const auto error = arena_->error()) std::rethrow_exception(error);
  return false;
}

MILLRACE_RARE void run_core::allocate() {
  slot_bytes_ = parts_.last->batch_bytes();
  const bool copies = !output_->backend().leases_host_slots();
  std::size_t prefetch = settings_.prefetch_batches;
  if (prefetch == 0)
    prefetch = memory_budget::default_prefetch(slot_bytes_) +
               (std::max(concurrency_.max_workers(), 1U) - 1) / settings_.batch_rows;
  memory_budget m{.budget_bytes = budget_bytes_,
                  .slot_bytes = slot_bytes_,
                  .host_slots = prefetch + (copies ? 0 : 1 + options_.extra_slots),   // 1 is for the training step
                  .device_slots = copies ? std::max<std::size_t>(1, settings_.device.slots) + options_.extra_slots : 0,
                  .device_memory_apart = output_->backend().memory() == memory_kind::device,
                  .batch_rows = settings_.batch_rows,
                  .read_ahead_bytes = read_ahead_bytes_,
                  .chunk_bytes = read_stage::chunk_bytes,
                  .chunk_samples = read_stage::chunk_samples,
                  .window = parts_.order->window(),
                  .withholds = parts_.order->withholds(),
                  .neighbor_bytes = parts_.order->held_bytes()};
  if (parts_.read->samples_read() > 0)
    m.sample_bytes = static_cast<double>(parts_.read->bytes_read()) / double(parts_.read->samples_read());
  m.check();
  concurrency_.start(m.max_reads());
  output_->allocate(
      {.host_slots = m.host_slots, .rows = settings_.batch_rows, .batch_bytes = slot_bytes_, .keys = settings_.keys});
  description_ = "millrace: " + world_text(*options_.world) + output_->backend().name() + ", " +
                 std::to_string(workers_) + (options_.executor ? " workers on the executor, " : " workers, ") +
                 std::to_string(parts_.read->threads()) + " I/O threads" + concurrency_.describe() +
                 (cores_.empty() ? "" : ", on the " + std::to_string(cores_.size()) + " cores near the device") + "; " +
                 parts_.last->describe() + "; memory: " + m.describe() + parts_.order->describe();
  start_notices_ = parts_.order->notices();
  const std::string damage = damage_notice(*parts_.damaged, settings_.batch_rows, *options_.world);
  for (const std::string& text : {damage, output_->backend().warning()})
    if (!text.empty()) start_notices_.push_back({notice_kind::setting, notice_severity::warning, text});
  for (const notice& n : start_notices_) description_ += "\nmillrace: " + n.text;
}

MILLRACE_RARE void run_core::open_slots() {
  output_->start();
  output_->set_listener(parts_.last);
  if (rows_) rows_->open(parts_.order->order_text(), parts_.last->describe());
  parts_.last->open_slots();
}

/// Reports the start. At this time, the workers already render the first batches.
MILLRACE_RARE void run_core::report_start() {
  const std::string line = description_.substr(0, description_.find('\n')),
                    advice = notices_.informs() ? parts_.order->shuffle_advice() : std::string();
  description_.insert(line.size(), advice);
  notices_.deliver({.kind = notice_kind::start, .text = line.substr(line.find(' ') + 1) + advice});
  for (const notice& n : std::exchange(start_notices_, {})) notices_.deliver(n);
  deliver_notices();
}

MILLRACE_INLINE void run_core::wait_for_calls() noexcept {
  for (pipeline_node* c : nodes_) c->stop();
  output_->host_slots().stop();
  while (called_.load(std::memory_order_acquire)) std::this_thread::yield();
}

MILLRACE_INLINE bool run_core::is_forked() const noexcept { return getpid() != process_; }

MILLRACE_INLINE bool run_core::begin(batch_lease& current, std::uint64_t epoch) {
  const bool was_over = end_.over;
  if (epoch < first_open_epoch_ && !end_.over && !end_.error && !is_forked())
    throw_epoch_passed(epoch, first_open_epoch_);
  if (step(current, epoch)) return true;
  const bool left_early = epoch != endless && epoch == last_epoch_;   // another loop ended at the epoch's last batch
  if (end_.over && next_batch_ > 0 && (was_over || !left_early)) throw_finished(options_, epoch);
  return false;
}

MILLRACE_INLINE bool run_core::step(batch_lease& current, std::uint64_t epoch) {
  current.release();
  if (epoch == endless) {
    current = next_of_any_epoch();
    return static_cast<bool>(current);
  }
  for (;;) {
    current = next(last_epoch_ == epoch);
    if (!current) break;
    if (current.epoch() > epoch) {
      returned_batch_ = std::move(current);
      break;
    }
    last_epoch_ = current.epoch();
    first_open_epoch_ = std::max(first_open_epoch_, last_epoch_);
    if (last_epoch_ == epoch) return true;
    current.release();   // the last batch of an earlier loop that was left early
  }
  first_open_epoch_ = std::max(first_open_epoch_, epoch + 1);
  return false;
}

MILLRACE_INLINE batch_lease run_core::next(bool stop_at_epoch) {
  if (is_forked()) throw_forked();
  end_.check();
  if (returned_batch_) return std::move(returned_batch_);
  if (concurrency_.due(delivered_.load(std::memory_order_relaxed)))
    without_memory_skip([&] {
      flow_statistics now = statistics();
      if (concurrency_.tune(now, nodes_)) warm_ups_.restart(std::move(now));
    });
  end_step();
  step_ended_ = false;
  const trainer_times::fill_levels full{output_->ready(), parts_.read->read_ahead_bytes()};
  batch_ring::take_result got;
  try {
    got = wait_for(next_batch_, stop_at_epoch);
  } catch (const setup_error&) {
    throw;   // an error of the caller, which does not end the session
  } catch (...) {
    fail(std::current_exception());
  }
  using kind = trainer_times::kind;
  const bool ready = got.what == batch_ring::outcome::ready, pauses = got.what == batch_ring::outcome::epoch_end;
  times_.record_return(steady_now_ns(), ready ? kind::batch : pauses ? kind::pause : kind::end, full);
  if (lost()) damaged_.add(lost_.take_new(), counts_);
  if (!ready) {
    if (got.what == batch_ring::outcome::end) end_of_run();
    end_.over = end_.over || got.what == batch_ring::outcome::end;
    return {};
  }
  output_->host_slots().forget_epochs_before(next_batch_++);
  batch_lease out = lease(got.batch);
  delivered_.fetch_add(1, std::memory_order_relaxed);
  samples_.fetch_add(got.batch.rows, std::memory_order_relaxed);
  delivered_bytes_.fetch_add(std::min(got.batch.extent.used_bytes, slot_bytes_), std::memory_order_relaxed);
  without_memory_skip([&] { warm_ups_.passed(delivered_.load(), [&] { return statistics(); }); });
  step_range_.start("batch", got.batch.batch);
  deliver_notices();
  return out;
}

MILLRACE_INLINE bool run_core::wait_at_most(std::uint64_t time_ns, std::uint64_t epoch) {
  if (is_forked() || workers_ == 0 || end_.error || end_.over || returned_batch_) return true;   // next() does not wait
  const auto has_answer = [&, stop_at_epoch = epoch != endless && last_epoch_ == epoch] {
    return output_->can_take(next_batch_, stop_at_epoch) || arena_->error() ||
           (!options_.leases_released_by_other_threads && output_->waits_for_lease(next_batch_));
  };
  if (has_answer()) return true;
  end_step();
  output_->bell().wait_at_most(time_ns, has_answer);
  return has_answer();
}

MILLRACE_INLINE void run_core::end_step() noexcept {
  if (std::exchange(step_ended_, true)) return;
  step_range_.end();
  times_.call(steady_now_ns(), output_->arrived_ns(next_batch_ - 1));
}

/// Creates the lease of a batch. An exception in this function ends the run, because the batch is lost.
MILLRACE_INLINE batch_lease run_core::lease(ready_batch& b) {
  const batch_origin origin = account_for(b);
  batch_lease out;
  try {
    out = batch_maker::lease(output_, b, settings_.device.stream, origin);
  } catch (...) {
    fail(error_located_by([] { return error_location{.stage = "next"}; }));
  }
  if (b.error) {
    out.release();
    fail(b.error);
  }
  return out;
}

/// Accounts for the samples of a batch, once per batch, in order. A wrong number of samples becomes the batch's error.
MILLRACE_INLINE batch_origin run_core::account_for(ready_batch& b) noexcept {
  try {
    const batch_origin origin = parts_.order->account_for(b);
    if (!b.error) damaged_.add(b, origin, counts_);
    return origin;
  } catch (...) {
    b.error = std::current_exception();
  }
  return {};
}

MILLRACE_RARE void run_core::end_of_run() try { parts_.order->finish(); } catch (...) {
  fail(std::current_exception());
}

MILLRACE_RARE void run_core::fail(std::exception_ptr why) {
  end_.error = parts_.read->explain(std::move(why));
  shut_down();
  end_.raise();
}

/// Without threads, advances the first pipeline node that can advance, from the trainer upstream; false if none can.
MILLRACE_INLINE bool run_core::advance_any() {
  for (std::size_t i = nodes_.size(); i-- > 0;)
    if (nodes_[i]->advance()) return true;
  return false;
}

MILLRACE_INLINE batch_ring::take_result run_core::wait_for(std::uint64_t batch, bool stop_at_epoch) {
  const trace_range waiting("wait", batch);
  for (;;) {
    const std::uint64_t changes = rows_ ? rows_->changes() : 0;
    const batch_ring::take_result got = output_->take(batch, stop_at_epoch);
    if (got.what != batch_ring::outcome::not_yet) return got;
    if (!options_.leases_released_by_other_threads && output_->waits_for_lease(batch))
      throw_all_leased(*output_, settings_.device.fixed_slots ? std::optional(batch) : std::nullopt);
    if (workers_ == 0) {
      if (advance_any()) {
        while (!output_->can_take(batch, stop_at_epoch) && advance_any()) continue;
        continue;
      }
      if (!rows_ || !rows_->may_change(changes)) return {batch_ring::outcome::stopped, {}};
      output_->bell().wait([&] { return rows_->changes() != changes || output_->can_take(batch, stop_at_epoch); });
    } else {
      if (const auto error = arena_->error()) std::rethrow_exception(error);
      output_->bell().wait([&] { return output_->can_take(batch, stop_at_epoch) || arena_->error(); });
    }
  }
}

MILLRACE_RARE void run_core::shut_down() noexcept {
  if (std::exchange(down_, true)) return;
  watcher_.reset();
  returned_batch_.release();
  for (pipeline_node* c : nodes_) c->stop();
  output_->host_slots().stop();
  if (arena_) arena_->release_threads();
  for (pipeline_node* c : nodes_) c->join();
  deliver_notices();
  if (const auto sum = damaged_.summary()) notices_.deliver(*sum);
  output_->set_listener(nullptr);
}

MILLRACE_RARE run_stats run_core::stats() const {
  run_stats s;
  s.batches = delivered_.load(std::memory_order_relaxed);
  s.samples = samples_.load(std::memory_order_relaxed);
  s.wait_ns = times_.wait_ns();
  s.step_ns = times_.step_ns();
  s.first_batch_ns = times_.first_batch_ns();
  s.worker_busy_ns = parts_.last->tickets().busy_ns();
  s.replaced = damaged_.replaced();
  s.masked = damaged_.masked();
  s.lost_shards = lost_.count() + damaged_.lost_shards();
  parts_.order->add_to(s);
  parts_.read->add_to(s);
  s.workers = workers_;
  s.host_slots = output_->host_slots().count();
  s.ready_slots = output_->host_slots().ready();
  s.slot_bytes = slot_bytes_;
  s.counts = counts_.counts();
  return s;
}

MILLRACE_RARE flow_statistics run_core::statistics() const {
  flow_statistics f;
  const std::uint64_t now = times_.clock(steady_now_ns());
  f.batches = delivered_.load(std::memory_order_relaxed);
  f.samples = samples_.load(std::memory_order_relaxed);
  f.batch_samples = settings_.batch_rows;
  f.delivered_bytes = delivered_bytes_.load(std::memory_order_relaxed);
  f.host_slots = output_->host_slots().count();
  f.device_slots = output_->backend().leases_host_slots() ? 0 : output_->lease_slots();
  f.read_ahead_bytes = parts_.read->read_ahead_limit_bytes();
  for (const pipeline_node* c : nodes_) c->add_to(f, now);
  times_.add_to(f, now);
  complete(f, process_statistics::now() - at_start_);
  return f;
}

MILLRACE_RARE std::string run_core::waits() const {
  const std::uint64_t now = steady_now_ns();
  std::string text = start_.text();
  if (text.empty()) text = times_.waits(now);
  if (!started_.load()) return text;
  if (const std::string line = arena_ ? arena_->waits() : ""; !line.empty()) text += "\n" + line;
  for (std::size_t i = nodes_.size(); i-- > 0;)
    if (const std::string line = nodes_[i]->waits(now); !line.empty()) text += "\n" + line;
  return text;
}

MILLRACE_RARE timeline run_core::events() const {
  timeline t;
  for (const pipeline_node* c : nodes_) c->add_to(t, times_.started_ns());
  times_.add_to(t);
  return t;
}

}}}   // namespace millrace::detail
