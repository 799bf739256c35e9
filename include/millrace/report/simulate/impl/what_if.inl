// Definitions for what_if.hpp.
#pragma once

#include <millrace/report/simulate/what_if.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/half.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE flow_simulation::flow_simulation(const pipeline_model& m) : m_(m) {
  if (m.io_threads == 0 || m.workers == 0 || m.host_slots == 0 || m.batch_samples == 0 || m.samples_per_read == 0)
    throw setup_error("io_threads, workers, host_slots, batch_samples or samples_per_read of a simulated run is 0",
                      "Set each of them to at least 1");
  for (std::size_t i = m.workers; i-- > 0;) idle_workers_.push_back(i);
  for (std::size_t i = m.io_threads; i-- > 0;) idle_readers_.push_back(i);
  missing_samples_.assign(m.host_slots, m.batch_samples);
  device_free_ = m.device_slots;
  describe();
}

MILLRACE_INLINE simulated flow_simulation::run() {
  const std::uint64_t last = m_.warm_up_batches + m_.batches;
  flow_statistics before = statistics_;
  start_ready_operations();
  while (delivered_ < last) {
    const double read_at = reading_.empty() ? never : now_ + (reading_.top().until - progress_) / read_speed();
    const double event_at = events_.empty() ? never : events_.top().at;
    const std::uint64_t had = delivered_;
    if (read_at <= event_at) {
      advance_to(read_at);
      end_read();
    } else {
      advance_to(event_at);
      const event e = events_.top();
      events_.pop();
      end(e);
    }
    start_ready_operations();
    if (had < m_.warm_up_batches && delivered_ >= m_.warm_up_batches) before = current_statistics();
  }
  result_.statistics = current_statistics() - before;
  return std::move(result_);
}

MILLRACE_INLINE bool flow_simulation::event::operator<(const event& other) const noexcept {
  return at != other.at ? at > other.at : order > other.order;
}

MILLRACE_INLINE bool flow_simulation::read::operator<(const read& other) const noexcept {
  return until != other.until ? until > other.until : number > other.number;
}

MILLRACE_INLINE void flow_simulation::describe() {
  const auto add = [&](const char* name, stage_kind what, std::size_t concurrency, bool there) -> std::size_t {
    if (!there) return nowhere;
    statistics_.stages.push_back(
        {.name = name, .kind = what, .concurrency = concurrency, .on_workers = what == stage_kind::work});
    std::vector<std::uint32_t> tracks;
    for (std::size_t i = 0; m_.with_timeline && what != stage_kind::unpack && i < concurrency; ++i)
      tracks.push_back(result_.events.add_track(concurrency > 1 ? name + std::string(" ") + std::to_string(i) : name));
    tracks_.push_back(what == stage_kind::unpack ? tracks_[0] : tracks);
    busy_.push_back({});
    return statistics_.stages.size() - 1;
  };
  reading_stage_ = add("read", stage_kind::read, m_.io_threads, true);
  unpack_stage_ = add("unpack", stage_kind::unpack, m_.io_threads, !m_.unpack_ns.empty());
  work_stage_ = add("work", stage_kind::work, m_.workers, true);
  copy_stage_ = add("copy", stage_kind::copy, 1, m_.device_slots > 0);
  step_stage_ = add("step", stage_kind::step, 1, true);
  for (const auto& p : m_.phases) statistics_.stages[work_stage_].phases.push_back({.name = p.first});
  statistics_.batch_samples = m_.batch_samples;
  statistics_.host_slots = m_.host_slots;
  statistics_.device_slots = m_.device_slots;
  statistics_.read_ahead_bytes = m_.read_ahead_bytes;
}

MILLRACE_INLINE double flow_simulation::read_speed() const noexcept {
  return 1 / (1 + m_.contention * (static_cast<double>(std::max<std::size_t>(reading_.size(), 1)) - 1));
}

MILLRACE_INLINE double flow_simulation::service_time(const empirical_distribution& times, stage s,
                                                     std::uint64_t number) const noexcept {
  rng random({.seed = m_.seed, .sample = number, .stage = s});
  return times.at(random);
}

MILLRACE_INLINE void flow_simulation::advance_to(double at) {
  const double spent = at - now_;
  now_ = at;
  progress_ += spent * read_speed();
  outstanding_ns_ += spent * static_cast<double>(reading_.size());
  reads_ns_[std::min(reading_.size(), read_levels::max_level)] += spent;
  const auto pass = [&](std::size_t stage, std::size_t busy, std::size_t idle, bool starved) {
    times& t = busy_[stage];
    t.busy += spent * static_cast<double>(busy);
    (starved ? t.starved : t.blocked) += spent * static_cast<double>(idle);
  };
  pass(reading_stage_, reading_.size(), idle_readers_.size(), false);
  if (unpack_stage_ != nowhere) pass(unpack_stage_, m_.io_threads - idle_readers_.size() - reading_.size(), 0, false);
  pass(work_stage_, m_.workers - idle_workers_.size(), idle_workers_.size(), available_ <= head_);
  if (copy_stage_ != nowhere) pass(copy_stage_, copying_ ? 1 : 0, copying_ ? 0 : 1, ready_ == copied_);
  pass(step_stage_, stepping_ ? 1 : 0, stepping_ ? 0 : 1, true);
}

MILLRACE_INLINE void flow_simulation::note(std::size_t stage, std::size_t worker, double started, std::uint64_t batch) {
  statistics_.stages[stage].service_ns.add(rounded(now_ - started));
  if (m_.with_timeline && delivered_ >= m_.warm_up_batches)
    result_.events.spans.push_back({tracks_[stage][worker], statistics_.stages[stage].name,
                                    static_cast<std::int64_t>(started), static_cast<std::int64_t>(now_), batch});
}

MILLRACE_INLINE void flow_simulation::count_in(const char* name, double value) {
  if (m_.with_timeline && delivered_ >= m_.warm_up_batches)
    result_.events.counters.push_back({name, static_cast<std::int64_t>(now_), value});
}

MILLRACE_INLINE void flow_simulation::push(kind what, std::size_t worker, std::uint64_t number, double duration) {
  events_.push({now_ + duration, order_++, what, worker, number, now_});
}

MILLRACE_INLINE void flow_simulation::start_ready_operations() {
  if (!stepping_ && handed_out_ < (copy_stage_ != nowhere ? copied_ : ready_)) {
    stepping_ = true;
    const double duration = service_time(m_.step_ns, step_draws, handed_out_), waited = now_ - step_ended_;
    statistics_.wait_ns.add(rounded(waited));
    if (delivered_ >= m_.warm_up_batches)
      result_.events.deliveries.push_back({static_cast<std::int64_t>(now_), rounded(waited), rounded(duration),
                                           static_cast<std::size_t>(ready_batches()),
                                           static_cast<std::size_t>(buffered_bytes_), handed_out_});
    count_in("ready slots", static_cast<double>(ready_batches()));
    push(kind::step, 0, handed_out_++, duration);
  }
  if (copy_stage_ != nowhere && !copying_ && copied_ < ready_ && device_free_ > 0) {
    copying_ = true;
    --device_free_;
    push(kind::copy, 0, copied_, service_time(m_.copy_ns, copy_draws, copied_));
  }
  const std::uint64_t claimable = std::min(available_, limit());
  while (!idle_workers_.empty() && head_ < claimable) {
    push(kind::work, idle_workers_.back(), head_, service_time(m_.work_ns, work_draws, head_));
    idle_workers_.pop_back();
    ++head_;
    buffered_bytes_ -= m_.sample_bytes;
  }
  while (!idle_readers_.empty() && next_read_ * m_.samples_per_read < head_ + max_ahead() &&
         (buffered_bytes_ + bytes_of_read() <= static_cast<double>(m_.read_ahead_bytes) ||
          (next_read_ * m_.samples_per_read == available_ && available_ == head_))) {
    reading_.push({progress_ + service_time(m_.read_ns, read_draws, next_read_), next_read_, idle_readers_.back(), now_,
                   outstanding_ns_});
    idle_readers_.pop_back();
    ++next_read_;
    buffered_bytes_ += bytes_of_read();
  }
}

MILLRACE_INLINE void flow_simulation::end_read() {
  const read r = reading_.top();
  const double duration = std::max(now_ - r.started, 1.0);
  statistics_.reads_at_once.add(
      static_cast<std::size_t>(rounded(std::max((outstanding_ns_ - r.outstanding_before) / duration, 1.0))),
      {.reads = 1, .read_ns = rounded(duration), .bytes = rounded(bytes_of_read())});
  reading_.pop();
  note(reading_stage_, r.worker, r.started, timeline_span::no_batch);
  statistics_.stages[reading_stage_].items += m_.samples_per_read;
  bytes_read_ += bytes_of_read();
  if (unpack_stage_ != nowhere)
    push(kind::unpack, r.worker, r.number, service_time(m_.unpack_ns, unpack_draws, r.number));
  else arrived(r.number, r.worker);
}

MILLRACE_INLINE void flow_simulation::arrived(std::uint64_t number, std::size_t worker) {
  idle_readers_.push_back(worker);
  const std::uint64_t first = available_ / m_.samples_per_read;
  if (arrived_.size() <= number - first) arrived_.resize(number - first + 1, false);
  arrived_[number - first] = true;
  while (!arrived_.empty() && arrived_.front()) {
    arrived_.pop_front();
    available_ += m_.samples_per_read;
  }
  count_in("read ahead (MB)", 1e-6 * buffered_bytes_);
}

MILLRACE_INLINE void flow_simulation::end(const event& e) {
  switch (e.what) {
    case kind::unpack:
      note(unpack_stage_, e.worker, e.started, timeline_span::no_batch);
      statistics_.stages[unpack_stage_].items += m_.samples_per_read;
      arrived(e.number, e.worker);
      break;
    case kind::work: {
      const std::uint64_t batch = e.number / m_.batch_samples;
      note(work_stage_, e.worker, e.started, batch);
      ++statistics_.stages[work_stage_].items;
      idle_workers_.push_back(e.worker);
      --missing_samples_[batch % m_.host_slots];
      while (ready_ < freed_ + m_.host_slots && missing_samples_[ready_ % m_.host_slots] == 0)
        missing_samples_[ready_++ % m_.host_slots] = m_.batch_samples;
      break;
    }
    case kind::copy:
      note(copy_stage_, 0, e.started, e.number);
      statistics_.stages[copy_stage_].items += m_.batch_samples;
      copying_ = false;
      ++copied_;
      ++freed_;
      break;
    case kind::step:
      note(step_stage_, 0, e.started, e.number);
      statistics_.stages[step_stage_].items += m_.batch_samples;
      stepping_ = false;
      step_ended_ = now_;
      if (copy_stage_ != nowhere) ++device_free_;
      else ++freed_;
      ++delivered_;
      break;
  }
}

MILLRACE_INLINE flow_statistics flow_simulation::current_statistics() const {
  flow_statistics f = statistics_;
  f.wall_ns = rounded(now_);
  f.batches = delivered_;
  f.samples = delivered_ * m_.batch_samples;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    f.stages[i].busy_ns = rounded(busy_[i].busy);
    f.stages[i].starved_ns = rounded(busy_[i].starved);
    f.stages[i].blocked_ns = rounded(busy_[i].blocked);
  }
  for (std::size_t p = 0; p < m_.phases.size(); ++p)
    f.stages[work_stage_].phases[p].busy_ns = rounded(busy_[work_stage_].busy * m_.phases[p].second);
  f.stages[reading_stage_].bytes = rounded(bytes_read_);
  if (copy_stage_ != nowhere) f.stages[copy_stage_].bytes = rounded(m_.batch_bytes * static_cast<double>(copied_));
  for (std::size_t k = 0; k < reads_ns_.size(); ++k) f.reads_at_once.add(k, {.ns = rounded(reads_ns_[k])});
  return f;
}

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE void check_change(const what_if_change& c) {
  const auto refuse = [](const char* what, double got, const char* expected) {
    throw setup_error("what_if_change::" + std::string(what) + " is out of range: got " + std::to_string(got) +
                          ", expected " + expected,
                      "Correct the value, or omit it for no change");
  };
  const auto is_factor = [](double x) { return x > 0 && is_finite(x); };
  if (!is_factor(c.storage_speed)) refuse("storage_speed", c.storage_speed, "a number above 0");
  if (!is_factor(c.work_time)) refuse("work_time", c.work_time, "a number above 0");
  if (c.step_time != 0 && !is_factor(c.step_time)) refuse("step_time", c.step_time, "a number of at least 0");
  if (c.batch && *c.batch == 0) refuse("batch", 0, "at least one sample");
}

MILLRACE_INLINE pipeline_model changed(pipeline_model m, const what_if_change& c) {
  m.workers = c.workers.value_or(m.workers);
  if (c.io_threads) m.io_threads = m.useful_readers(*c.io_threads);
  m.host_slots = c.prefetch.value_or(m.host_slots);
  m.read_ns = m.read_ns.scaled(1 / c.storage_speed);
  m.work_ns = m.work_ns.scaled(c.work_time);
  m.step_ns = m.step_ns.scaled(c.step_time);
  if (c.batch) {
    const double larger = static_cast<double>(*c.batch) / static_cast<double>(m.batch_samples);
    m.copy_ns = m.copy_ns.scaled(larger);
    const double fixed = std::min(c.fixed_step_ns, m.step_ns.mean());
    m.step_ns = m.step_ns.with_mean(fixed + (m.step_ns.mean() - fixed) * larger);
    m.batch_bytes *= larger;
    m.batch_samples = *c.batch;
  }
  return m;
}

}   // namespace detail

MILLRACE_INLINE prediction what_if(const flow_statistics& recorded, const what_if_change& c) {
  detail::check_change(c);
  const detail::pipeline_model was = detail::model_of(recorded);
  const double before = simulate(was).statistics.samples_per_s();
  const flow_statistics then = simulate(changed(was, c)).statistics;
  const double ratio = before > 0 ? then.samples_per_s() / before : 0;
  return {recorded.samples_per_s() * ratio, ratio - 1, then.data_wait_share(), judge(then)};
}

MILLRACE_INLINE std::vector<knob_gain> simulated_gains(const flow_statistics& recorded) {
  std::vector<knob_gain> gains = gains_of(recorded);
  for (knob_gain& k : gains) {
    if (k.remark.empty() || k.settings.batch) k.gain = what_if(recorded, k.settings).gain;
    k.at_most = k.at_most && k.what != knob::prefetch;
  }
  return gains;
}

}}   // namespace millrace
