// The time and order in which queued work runs: as late as possible, at once, or shuffled.
#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fake_cuda::detail {
namespace {

constexpr std::size_t max_pieces = 64;

/// Copies run page by page, but the number of pieces is limited to save time.
std::size_t piece_bytes(const operation& op) {
  const std::size_t share = (op.todo.bytes + max_pieces - 1) / max_pieces;
  return (share + page_bytes - 1) / page_bytes * page_bytes;
}

bool ready(const operation& op) {
  return std::all_of(op.after.begin(), op.after.end(), [](const operation_pointer& o) { return o->done; });
}

void call_function(const work& todo) {
  this_thread().inside_kernel = true;
  // C functions must not throw.
  [&]() noexcept { todo.function(todo.argument); }();
  this_thread().inside_kernel = false;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::uint64_t world::random(std::uint64_t below) {
  random_state += 0x9E3779B97F4A7C15;   // SplitMix64
  std::uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return (z ^ (z >> 31)) % below;
}

/// Whether the head of the stream can run now. A host function waits for the running one.
bool world::can_run(const stream& s) const {
  return !s.queue.empty() && !s.busy && ready(*s.queue.front()) &&
         !(host_function_ && s.queue.front()->todo.is_host_function);
}

operation_pointer world::enqueue(stream& s, const work& todo, work_extra extra) {
  auto op = std::make_shared<operation>();
  op->todo = todo;
  op->on = &s;
  op->staged = std::move(extra.staged);
  op->after = std::move(extra.after);
  // The legacy stream and the blocking ones of a device wait for each other.
  for (const stream_pointer& other : streams) {
    const bool linked = other.get() != &s && other->in == s.in && s.blocking && other->blocking &&
                        (s.legacy || other->legacy);
    if (linked && !other->queue.empty()) {
      op->after.push_back(other->queue.back());
    }
  }
  std::erase_if(op->after, [](const operation_pointer& o) { return o->done; });

  if (todo.what == work::kind::copy || todo.what == work::kind::fill) {
    if (auto* a = allocations.find(todo.to)) {
      ++a->users;
      // The host must not read it from now on, and earlier operations do not.
      if (a->what != memory::kind::device && todo.what == work::kind::copy && a->users == 1 &&
          !allocations.has_readers(todo.to, todo.bytes)) {
        allocations.fill(todo.to, poison, todo.bytes);
      }
    }
  }
  if (todo.what == work::kind::copy && op->staged.empty()) {
    if (auto* a = allocations.find(todo.from)) {
      ++a->users;
      allocations.hold_source(todo.from, todo.bytes);
      op->holds_source = true;
    }
  }
  s.queue.push_back(op);
  begin_heads();
  if (!threads_.empty()) changed.notify_all();
  return op;
}

/// Operations that became legal begin: the previous content of the destination is gone, before any byte arrives.
void world::begin_heads() {
  if (options.when == order::early && threads_.empty()) return;   // it completes before any access
  for (const stream_pointer& s : streams) {
    if (can_run(*s)) begin(*s->queue.front());
  }
}

void world::begin(operation& op) {
  if (op.begun || op.todo.what != work::kind::copy) return;
  op.begun = true;
  allocations.fill(op.todo.to, poison, op.todo.bytes);
}

stream_pointer world::runnable() {
  std::vector<const stream_pointer*> candidates;
  for (const stream_pointer& s : streams) {
    if (can_run(*s)) candidates.push_back(&s);
  }
  if (candidates.empty()) return nullptr;
  return *candidates[options.when == order::shuffled ? random(candidates.size()) : 0];
}

/// A stream whose head must run before `target`; null if it is already running on another thread, or waits for the
/// running host function.
stream_pointer world::needed_for(operation_pointer target) {
  for (;;) {
    stream& s = *target->on;
    if (s.busy) return nullptr;
    const operation& head = *s.queue.front();
    const auto blocker = std::find_if(head.after.begin(), head.after.end(),
                                      [](const operation_pointer& o) { return !o->done; });
    if (blocker == head.after.end()) return can_run(s) ? s.shared_from_this() : nullptr;
    target = *blocker;
  }
}

void world::run_head(const stream_pointer& s, bool complete) {
  const operation_pointer op = s->queue.front();
  switch (op->todo.what) {
    case work::kind::copy:
      if (!move_bytes(*op, complete)) return;
      break;
    case work::kind::fill:
      allocations.fill(op->todo.to, op->todo.value, op->todo.bytes);
      break;
    case work::kind::kernel:
      run_kernel(*s, *op);
      if (op->done) return;   // the device failed meanwhile
      break;
    case work::kind::record:
    case work::kind::wait:
      break;
  }
  finish(*s);
}

bool world::move_bytes(operation& op, bool complete) {
  const std::size_t size = piece_bytes(op), count = (op.todo.bytes + size - 1) / size;
  if (op.pieces.empty()) {
    for (std::size_t i = count; i-- > 0;) op.pieces.push_back(static_cast<std::uint32_t>(i));
    if (!complete) {
      for (std::size_t i = count; i > 1; --i) std::swap(op.pieces[i - 1], op.pieces[random(i)]);
    }
  }
  const auto* from = op.staged.empty() ? static_cast<const std::byte*>(op.todo.from) : op.staged.data();
  do {
    const std::size_t offset = op.pieces.back() * size;
    op.pieces.pop_back();
    allocations.write(static_cast<std::byte*>(op.todo.to) + offset, from + offset,
                      std::min(size, op.todo.bytes - offset));
  } while (complete && !op.pieces.empty());
  return op.pieces.empty();
}

void world::run_kernel(stream& s, const operation& op) {
  s.busy = true;
  ++busy_;
  allocations.open(s.device);
  if (op.todo.is_host_function) {
    run_host_function(op.todo);
  } else {
    mutex.unlock();
    call_function(op.todo);
    mutex.lock();
  }
  allocations.close(s.device);
  --busy_;
  s.busy = false;
  changed.notify_all();
}

/// Runs it on the thread for host functions.
void world::run_host_function(const work& todo) {
  if (!host_thread_.joinable()) host_thread_ = std::thread([this] { host_functions(); });
  host_function_ = &todo;
  changed.notify_all();
  std::unique_lock lock(mutex, std::adopt_lock);
  changed.wait(lock, [&] { return host_function_ != &todo; });
  lock.release();
}

void world::host_functions() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return host_function_ || stopping_; });
    if (!host_function_) return;
    lock.unlock();
    call_function(*host_function_);
    lock.lock();
    host_function_ = nullptr;
    changed.notify_all();
  }
}

void world::settle_operation(operation& op) {
  op.done = true;
  op.done_at_ns = now_ns();
  op.after.clear();
  if (op.holds_source) {
    allocations.release_source(op.todo.from, op.todo.bytes);
    if (auto* a = allocations.find(op.todo.from)) --a->users;
  }
  if (op.todo.what == work::kind::copy || op.todo.what == work::kind::fill) {
    if (auto* a = allocations.find(op.todo.to)) --a->users;
  }
}

void world::finish(stream& s) {
  settle_operation(*s.queue.front());
  s.queue.pop_front();
  if (s.destroyed && s.queue.empty()) std::erase_if(streams, [&](const stream_pointer& p) { return p.get() == &s; });
  begin_heads();
  if (waiting_ || !threads_.empty()) changed.notify_all();
}

void world::wait_for(const operations& targets) {
  std::unique_lock lock(mutex, std::adopt_lock);
  ++waiting_;
  for (const operation_pointer& target : targets) {
    while (!target->done) {
      const bool by_lot = options.when == order::shuffled;
      const stream_pointer s = !threads_.empty() ? nullptr : by_lot ? runnable() : needed_for(target);
      if (s) {
        run_head(s, !by_lot);
      } else if (busy_ || !threads_.empty()) {
        changed.notify_all();
        changed.wait(lock);
      } else {
        std::fputs("fake_cuda: a deadlock: nothing can run, but a thread waits\n", stderr);
        std::abort();
      }
    }
  }
  --waiting_;
  lock.release();
}

bool world::is_done(const operations& targets) {
  for (const operation_pointer& target : targets) {
    if (target->done) continue;
    // Repeated queries run the operation, but do not wait for a kernel on another thread.
    if (options.when == order::late && threads_.empty() && ++target->polls >= options.polls) {
      while (!target->done) {
        const stream_pointer s = needed_for(target);
        if (!s) break;
        run_head(s, true);
      }
    }
    if (!target->done) return false;
  }
  return true;
}

void world::progress() {
  if (!threads_.empty() || options.when == order::late) return;
  if (options.when == order::early) {
    while (const stream_pointer s = runnable()) run_head(s, true);
    return;
  }
  for (std::uint64_t steps = random(4); steps > 0; --steps) {
    const stream_pointer s = runnable();
    if (!s) return;
    run_head(s, false);
  }
}

void world::run_all() { wait_for(all_unfinished()); }

void world::drop_all_work() {
  for (const stream_pointer& s : streams) {
    for (const operation_pointer& op : s->queue) settle_operation(*op);
    s->queue.clear();
  }
  std::erase_if(streams, [](const stream_pointer& s) { return s->destroyed; });
  changed.notify_all();
}

/// The operations that a wait for a stream waits for: its newest one; for the legacy stream also those of blocking
/// streams.
operations world::unfinished_of(const stream& s) const {
  operations result;
  for (const stream_pointer& other : streams) {
    const bool counts = other.get() == &s || (s.legacy && other->blocking && other->in == s.in);
    if (counts && !other->queue.empty()) result.push_back(other->queue.back());
  }
  return result;
}

operations world::all_unfinished() const {
  operations result;
  for (const stream_pointer& s : streams) {
    if (!s->queue.empty()) result.push_back(s->queue.back());
  }
  return result;
}

void world::background() {
  std::unique_lock lock(mutex);
  while (!stopping_) {
    stream_pointer s = runnable();
    if (s && options.when == order::late && !waiting_) {
      changed.wait_for(lock, std::chrono::microseconds(100));
      if (stopping_) break;
      s = runnable();
    }
    if (!s) {
      changed.wait(lock);
      continue;
    }
    lock.release();
    run_head(s, options.when != order::shuffled);
    lock = std::unique_lock(mutex, std::adopt_lock);
    if (options.when == order::shuffled && !waiting_) {   // other threads get the lock between two pieces
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
}

bool world::kernel_uses(const memory::allocation& a) const {
  const auto is_inside = [&](const std::byte* at) { return at >= a.address && at < a.address + a.bytes; };
  const auto uses = [&](const operation_pointer& op) {
    return std::any_of(op->todo.addresses.begin(), op->todo.addresses.end(), is_inside);
  };
  return std::any_of(streams.begin(), streams.end(),
                     [&](const auto& s) { return std::any_of(s->queue.begin(), s->queue.end(), uses); });
}

void world::start_threads() {
  stopping_ = false;
  for (int i = 0; i < options.background_threads; ++i) {
    threads_.emplace_back([this] { background(); });
  }
}

/// Also waits for running kernels. The lock is released meanwhile.
void world::stop_threads() {
  stopping_ = true;
  changed.notify_all();
  std::unique_lock lock(mutex, std::adopt_lock);
  changed.wait(lock, [&] { return busy_ == 0; });
  std::vector<std::thread> ending = std::move(threads_);
  threads_.clear();
  if (host_thread_.joinable()) ending.push_back(std::move(host_thread_));
  lock.unlock();
  for (std::thread& t : ending) t.join();
  lock.lock();
  lock.release();
}

}  // namespace fake_cuda::detail
