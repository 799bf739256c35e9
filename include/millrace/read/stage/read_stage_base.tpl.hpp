// Defines the members of the templates in read_stage_base.hpp.
#pragma once

#include <millrace/read/stage/read_stage_base.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Source>
MILLRACE_RARE void read_stage_base<Source>::add_to(flow_statistics& f, std::uint64_t now_ns) const {
  add_reading(f, {.reads = meter().snapshot() -= before_,
                  .metered = metered,
                  .threads = limit_.open(),
                  .open_ns = limit_.open_ns(now_ns),
                  .busy_ns = busy_ns(),
                  .samples = samples_read(),
                  .bytes = bytes_read(),
                  .in_turn_ns = in_turn_ns_.load(std::memory_order_relaxed),
                  .in_turn_samples = in_turn_samples_.load(std::memory_order_relaxed),
                  .passed_on = passed_on_.load(std::memory_order_relaxed)});
}

template <class Source>
MILLRACE_RARE std::string read_stage_base<Source>::waits(std::uint64_t now_ns) const {
  std::string text = "read: " + meter().waits(now_ns);
  // The meter of a source that measures its own reads contains only these reads. If none of them is running, the oldest
  // unfinished chunk shows the shard that this stage is reading.
  if constexpr (metered)
    if (const std::string slowest = chunks_.longest(now_ns); !slowest.empty() && meter().longest(now_ns).empty())
      text += ", now at " + slowest;
  return text + "; " + std::to_string(this->read_ahead_bytes() / 1'000'000) + " MB wait for workers";
}

template <class Source>
MILLRACE_RARE void read_stage_base<Source>::add_to(timeline& t, std::uint64_t start_ns) const {
  const auto lanes = meter().spans();
  for (std::size_t i = 0; i < lanes.size(); ++i)
    detail::add_spans(t, "read " + std::to_string(i), "read", lanes[i], start_ns);
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::name_samples(std::shared_ptr<sample_names> names) {
  if constexpr (requires { source_->name_samples(names); }) source_->name_samples(names);
  names_ = std::move(names);
}

template <class Source>
MILLRACE_RARE std::exception_ptr read_stage_base<Source>::explain(std::exception_ptr why) const {
  if constexpr (requires(const error_location& at) { source_->other_piece_of(at); }) {
    try {
      std::rethrow_exception(why);
    } catch (missing_field_error& missing) {
      try {
        if (const auto piece = source_->other_piece_of(missing.where()))
          missing.explain(text_of(*piece, missing.where().offset_bytes),
                          "The members of a sample must be adjacent: write the shard again with "
                          "`tar --sort=name`");
      } catch (const std::exception&) {   // the error is not changed
      }
    } catch (...) {}
  }
  if constexpr (requires { source_->having().empty(); }) {
    if (source_->having().empty()) return why;
    try {
      std::rethrow_exception(why);
    } catch (no_sample_error& none) {
      none.explain("; .having omits samples without " + source_->having().text(),
                   "Compare .having with the fields that examples/inspect lists. With an index, each rank gets "
                   "its share of the samples with these fields");
    } catch (...) {}
  }
  return why;
}

template <class Source>
MILLRACE_RARE void read_stage_base<Source>::set_active(const concurrency_counts& open) {
  limit_.open(open.reads);
  wake_one();
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::start() {
  start_threads(threads_, io_threads_, [this](std::size_t i) {
    name_worker_thread("millrace-read");
    work(i);
  });
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::space_freed() noexcept {
  if (next_->backlog() >= wake_below_.load() || wake_below_.exchange(0) == 0) return;
  wake_one();
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::stop() noexcept {
  stopped_.store(true);
  wakeups_.ring();
  limit_.wake();
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::join() noexcept {
  for (auto& t : threads_)
    if (t.joinable()) t.join();
}

template <class Source>
MILLRACE_RARE read_stage_base<Source>::read_stage_base(const Source& source, sample_sink<item>& next,
                                                       const base_options& o)
    : source_(&source),
      next_(&next),
      limit_(o.threads),
      ahead_(o.read_ahead_bytes),
      io_threads_(o.threads),
      before_(meter().snapshot()) {
  next.set_listener(this);
}

template <class Source>
MILLRACE_INLINE std::string read_stage_base<Source>::name_of(const shard& from) const {
  if constexpr (requires { source_->shard_name(from.ordinal); }) {
    const std::string name = source_->shard_name(from.ordinal);
    return name.substr(name.rfind('/') + 1);
  } else {
    return std::to_string(from.ordinal);
  }
}

template <class Source>
MILLRACE_RARE std::string read_stage_base<Source>::full_name_of(const shard& from) const {
  if constexpr (requires { source_->shard_name(from.ordinal); }) return source_->shard_name(from.ordinal);
  else if (source_->shards() == 1) return "the source";
  else return "shard " + std::to_string(from.ordinal) + " of the source";
}

template <class Source>
MILLRACE_RARE void read_stage_base<Source>::work(std::size_t thread) {
  chunk read;
  std::unique_lock lock(mutex_);
  while (!stopped_.load()) {
    try {
      work_until_stopped(thread, lock, read);
    } catch (...) {
      // Keeps the lock, because no other thread may pass on samples after a lost sample.
      if (!lock.owns_lock()) lock.lock();
      finish(error_located_by([] { return error_location{.stage = "source"}; }));
      next_->publish();
      wake_one();
    }
  }
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::work_until_stopped(std::size_t thread, std::unique_lock<std::mutex>& lock,
                                                                 chunk& read) {
  while (!stopped_.load()) {
    if (limit_.closed(thread)) {
      lock.unlock();
      wake_one();   // another thread must do the work for which this thread was woken
      limit_.rest(thread, stopped_);
      lock.lock();
      continue;
    }
    const bool stalled = is_stalled();
    const portion work = find_work();
    // While this thread sleeps or reads slowly, another thread passes on waiting samples.
    if (!request_space() && !stalled) continue;
    if (work.from) {
      if (finds_other_work(work)) wake_one();
      read_into(lock, work, read);
    } else {
      lock.unlock();
      wakeups_.wait([&] { return stopped_.load() || wake_pending_.exchange(false); });
      lock.lock();
    }
  }
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::is_stalled() {
  next_->publish();   // adds the latest samples to backlog()
  const bool drained = next_->backlog() == 0;
  return !pass_on() && drained;
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::finds_other_work(const portion& mine) {
  mine.from->has_reader = true;
  const bool has_work = find_work().from != nullptr;
  mine.from->has_reader = false;
  return has_work;
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::request_space() {
  if (!needs_space()) return true;
  return next_->backlog() > 0 && request_wake();
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::read_into(std::unique_lock<std::mutex>& lock, const portion& work,
                                                        chunk& read) {
  work.from->has_reader = true;
  lock.unlock();
  read_chunk(read, work);
  lock.lock();
  work.from->has_reader = false;
  ahead_.record_backlog(next_->backlog());
  work.of->append(*work.from, read.samples);
  if (!read.more) work.of->end(*work.from, std::exchange(read.error, nullptr));
  read.samples.clear();
  read.bytes = 0;
  read.more = true;
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::request_wake() {
  const std::uint64_t below = next_->backlog() / 2 + 1;
  wake_below_.store(below);
  return next_->backlog() >= below;
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::wake_one() noexcept {
  wake_pending_.store(true);
  wakeups_.ring_one();
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::read_chunk(chunk& read, const portion& work) {
  shard& from = *work.from;
  const std::uint64_t start = steady_now_ns();
  std::optional<read_meter::running> all;
  const trace_range reading([&] { return "read/" + name_of(from); });
  try {
    if (!from.open) from.name = full_name_of(from);
    if constexpr (requires { source_->expect(from.coming); })
      if (!from.coming.empty()) source_->expect(std::exchange(from.coming, {}));
    all.emplace(chunks_, start, from.name);
    if (!from.open && !from.lost) from.open.emplace(source_->open(from.ordinal, from.epoch));
    read_until_full(read, work, chunk_clock(start));
  } catch (...) {
    read.error = located(from);
    read.more = lose_rest(from, read.error);
    if (read.more) read.error = nullptr;
  }
  const std::uint64_t end = steady_now_ns();
  if (all) {
    all->record_bytes(read.bytes);
    all->end(end);
  }
  count_chunk(read, work.in_turn, end - start);
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::read_until_full(chunk& read, const portion& work, chunk_clock clock) {
  for (std::size_t samples = 0; samples < work.most && chunk_bytes > read.bytes; ++samples)
    if (!append_sample(read, *work.from) || clock.ends_chunk([&] { return next_->backlog() == 0; }) ||
        stopped_.load(std::memory_order_relaxed))
      break;
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::append_sample(chunk& read, shard& from) {
  sample<item>& s = read.samples.emplace_back();
  try {
    read.more = read_sample(from, s);
    if (names_ && s.item) name_sample(from, s);
  } catch (...) {
    read.samples.pop_back();
    throw;
  }
  if (read.more) read.bytes += held_bytes_of(s);
  else read.samples.pop_back();
  return read.more;
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::name_sample(shard& from, sample<item>& s) {
  names_->name(s, [&] {
    if constexpr (requires { from.open->name(); }) return from.open->name();
    const located_sample at{from.ordinal, from.next_index - 1};
    return sample_names::name_in(*source_, at);
  });
}

template <class Source>
MILLRACE_INLINE void read_stage_base<Source>::count_chunk(const chunk& read, bool in_turn, std::uint64_t ns) noexcept {
  bytes_read_.fetch_add(read.bytes, std::memory_order_relaxed);
  samples_read_.fetch_add(read.samples.size(), std::memory_order_relaxed);
  busy_ns_.fetch_add(ns, std::memory_order_relaxed);
  if (!in_turn) return;
  in_turn_ns_.fetch_add(ns, std::memory_order_relaxed);
  in_turn_samples_.fetch_add(read.samples.size(), std::memory_order_relaxed);
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::read_sample(shard& from, sample<item>& s) {
  s.epoch = s.pass = from.epoch;
  if (from.lost) [[unlikely]]
    return create_lost_sample(from, s);
  if constexpr (requires { from.open->can_continue(); }) {
    try {
      s.item = from.open->next();
    } catch (...) {
      if (!from.open->can_continue()) throw;
      if (!tolerates_damage_) {
        if constexpr (requires { from.open->check_rest(); }) from.open->check_rest();
        throw;
      }
      s.item.set_error(located(from));
      s.what = sample<item>::kind::damaged;
    }
  } else if constexpr (requires { from.open->skip(); }) {
    try {
      s.item = from.open->next();
    } catch (...) {
      if (!tolerates_damage_ || !is_damage_of_source(std::current_exception())) throw;
      const std::exception_ptr why = located_exception(from.open->failed());
      s.item.set_error(is_error_of_storage(why) ? as_lost_shard(why) : why);
      s.what = sample<item>::kind::damaged;
      from.open->skip();
    }
  } else {
    s.item = from.open->next();
  }
  if (!s.item && !s.item.is_error()) return false;
  if constexpr (requires { from.open->stamp(s); }) from.open->stamp(s);
  else s.id = combine_keys(from.id_key, from.next_index++);
  return true;
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::lose_rest(shard& from, const std::exception_ptr& why) const {
  if constexpr (requires { source_->stated_samples(from.ordinal); }) {
    if (!tolerates_damage_ || from.lost || !is_damage_of_source(why)) return false;
    try {
      from.stated_samples = source_->stated_samples(from.ordinal);
    } catch (...) {
      return false;   // out of memory
    }
    if (from.stated_samples <= from.next_index) return false;
    from.lost = why;
    return true;
  } else {
    return false;
  }
}

template <class Source>
MILLRACE_INLINE bool read_stage_base<Source>::create_lost_sample(shard& from, sample<item>& s) const {
  if (from.next_index >= from.stated_samples) return false;
  s.item.set_error(as_lost_shard(from.lost));   // a new object, because several threads may add locations
  s.what = sample<item>::kind::damaged;
  s.id = combine_keys(from.id_key, from.next_index++);
  return true;
}

/// Returns the current exception, with the location of the shard.
template <class Source>
MILLRACE_INLINE std::exception_ptr read_stage_base<Source>::located(const shard& from) const {
  error_location at{.stage = "source"};
  if constexpr (requires { source_->shard_name(from.ordinal); }) at.shard = source_->shard_name(from.ordinal);
  return located_exception(at);
}

template <class Source>
MILLRACE_INLINE read_meter& read_stage_base<Source>::meter() const noexcept {
  if constexpr (metered) return source_->reads();
  else return chunks_;
}

}}}   // namespace millrace::detail
