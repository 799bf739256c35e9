// Definitions for remote_file.hpp.
#pragma once

#include <millrace/adapt/remote/remote_file.hpp>

#include <algorithm>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::shared_ptr<transfer_object> remote_object_table::get(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

MILLRACE_INLINE void remote_object_table::put(const std::string& name, std::shared_ptr<transfer_object> object) {
  const std::lock_guard lock(mutex_);
  if (object) by_name_[name] = std::move(object);
  else by_name_.erase(name);
}

MILLRACE_INLINE void last_remote_window::keep(const fetch_window& w) noexcept {
  if (!w.has_consumed()) return;
  const std::lock_guard lock(mutex_);
  last_ = w;
}

MILLRACE_INLINE fetch_window last_remote_window::of_next_file() const noexcept {
  const std::lock_guard lock(mutex_);
  return last_.of_next_file();
}

MILLRACE_INLINE std::size_t remote_context::part_size() const noexcept {
  const std::size_t each = memory.bound_bytes() / (2 * std::max<std::size_t>(readers.load(), 1));
  return std::clamp(each, std::min(part_bytes, std::size_t{256} << 10), part_bytes);
}

MILLRACE_INLINE std::unique_ptr<remote_file> remote_file::open(std::shared_ptr<remote_context> context,
                                                               const std::string& name, std::size_t front_bytes) {
  auto object = std::make_shared<transfer_object>(transfer_object{.name = name});
  part front = make_part(*context, object, {0, front_bytes}, part_memory::need::required);
  const abandon_guard guard{front, *context};
  context->engine.submit(front.fetch);
  if (!front.fetch->wait_for_identity()) return nullptr;
  auto file = std::make_unique<remote_file>(context, std::move(object));
  file->parts_.push_back(std::move(front));
  return file;
}

MILLRACE_INLINE std::shared_ptr<transfer_object> remote_file::find(remote_context& context, const std::string& name) {
  auto object = std::make_shared<transfer_object>(transfer_object{.name = name});
  std::byte one{};
  const auto fetch = std::make_shared<range_fetch>(object, 0, std::span(&one, 1));
  struct abandon_guard {
    range_fetch& fetch;
    ~abandon_guard() { fetch.abandon(); }
  } const guard{*fetch};
  context.engine.submit(fetch);
  return fetch->wait_for_identity() ? object : nullptr;
}

MILLRACE_INLINE remote_file::~remote_file() {
  context_->windows.keep(window_);
  drop_all();
}

MILLRACE_INLINE void remote_file::will_read(std::span<const byte_range> ranges) {
  announced_.clear();
  const std::uint64_t end = size_bytes();
  for (const byte_range& r : ranges) {
    if (r.offset_bytes >= end || r.size_bytes == 0) continue;
    announced_.push_back({r.offset_bytes, r.offset_bytes + std::min(r.size_bytes, end - r.offset_bytes)});
  }
  drop_unannounced_parts();
  request_ahead();
}

MILLRACE_INLINE std::size_t remote_file::read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  if (buffer.empty() || offset_bytes >= size_bytes()) return 0;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size_bytes() - offset_bytes));
  if (find(offset_bytes) == parts_.end()) reach(offset_bytes);
  const auto at = find(offset_bytes);
  if (at == parts_.end()) return read_now(offset_bytes, buffer.first(bytes));
  const auto from = static_cast<std::size_t>(offset_bytes - at->fetch->offset_bytes());
  const std::size_t end = std::min(from + bytes, at->fetch->size_bytes());
  if (at->fetch->arrived() < end) window_.adapt(context_->memory.bound_bytes() / 2);
  at->fetch->wait_into(from, buffer.first(end - from));
  window_.record_consumed(end - from, context_->engine.now());
  if (end == at->fetch->size_bytes()) parts_.erase(at);
  request_ahead();
  return end - from;
}

MILLRACE_INLINE remote_file::abandon_guard::~abandon_guard() {
  if (!one.fetch) return;
  one.fetch->abandon();
  context.engine.sweep();
}

MILLRACE_INLINE remote_file::part remote_file::make_part(remote_context& context,
                                                         const std::shared_ptr<transfer_object>& object,
                                                         const byte_interval& range, part_memory::need how) {
  auto memory = context.memory.take(static_cast<std::size_t>(range.end_byte - range.first_byte), how);
  if (!memory) throw std::bad_alloc();
  auto fetch = std::make_shared<range_fetch>(object, range.first_byte, memory->bytes());
  return {std::move(fetch), std::move(*memory)};
}

MILLRACE_INLINE std::deque<remote_file::part>::iterator remote_file::find(std::uint64_t offset_bytes) {
  return std::find_if(parts_.begin(), parts_.end(), [&](const part& p) {
    return offset_bytes >= p.fetch->offset_bytes() + p.fetch->buffered_from() && offset_bytes < p.fetch->end_byte();
  });
}

MILLRACE_INLINE void remote_file::reach(std::uint64_t offset_bytes) {
  const auto match = std::find_if(announced_.begin(), announced_.end(), [&](const byte_interval& r) {
    return offset_bytes >= r.first_byte && offset_bytes < r.end_byte;
  });
  if (match == announced_.end()) return;
  announced_.erase(announced_.begin(), match);
  // A reader that inspects only headers does not read the bytes between them.
  const std::uint64_t skipped = offset_bytes - announced_.front().first_byte;
  if (skipped >= context_->part_size()) announced_.front().first_byte = offset_bytes;
  drop_parts_before(announced_.front().first_byte);
  while (find(offset_bytes) == parts_.end() && request_next(part_memory::need::required)) {}
}

MILLRACE_INLINE void remote_file::request_ahead() {
  set_reading(!announced_.empty() || !parts_.empty());
  std::size_t ahead = 0;
  for (const part& p : parts_) ahead += p.fetch->size_bytes();
  while (!announced_.empty() && ahead < window_.bytes()) {
    const std::size_t before = parts_.size();
    if (!request_next(parts_.empty() ? part_memory::need::required : part_memory::need::optional)) return;
    if (parts_.size() > before) ahead += parts_.back().fetch->size_bytes();
  }
}

MILLRACE_INLINE bool remote_file::request_next(part_memory::need how) {
  while (!announced_.empty()) {
    byte_interval& next = announced_.front();
    // The front of the object has already been fetched.
    for (const part& p : parts_)
      if (next.first_byte >= p.fetch->offset_bytes() && next.first_byte < p.fetch->end_byte())
        next.first_byte = p.fetch->end_byte();
    if (next.first_byte >= next.end_byte) {
      announced_.pop_front();
      continue;
    }
    const std::uint64_t left = next.end_byte - next.first_byte;
    // If less than half a part would remain, the last part includes it.
    const std::size_t size = context_->part_size();
    const std::uint64_t bytes = left <= size + size / 2 ? left : size;
    auto memory = context_->memory.take(static_cast<std::size_t>(bytes), how);
    if (!memory) return false;
    auto fetch = std::make_shared<range_fetch>(object_, next.first_byte, memory->bytes());
    parts_.push_back({fetch, std::move(*memory)});
    next.first_byte += bytes;
    if (next.first_byte == next.end_byte) announced_.pop_front();
    context_->engine.submit(std::move(fetch));
    return true;
  }
  return false;
}

MILLRACE_INLINE std::size_t remote_file::read_now(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  struct remote_fetch_list {
    std::vector<std::shared_ptr<range_fetch>> all{};
    remote_context& context;
    ~remote_fetch_list() {
      for (const auto& one : all) one->abandon();
      context.engine.sweep();
    }
  } fetches{.context = *context_};
  const std::size_t size = context_->part_bytes;
  for (std::size_t at = 0; at < buffer.size();) {
    const std::size_t left = buffer.size() - at, bytes = left <= size + size / 2 ? left : size;
    fetches.all.push_back(std::make_shared<range_fetch>(object_, offset_bytes + at, buffer.subspan(at, bytes)));
    context_->engine.submit(fetches.all.back());
    at += bytes;
  }
  for (const auto& one : fetches.all) one->wait_for(one->size_bytes());
  fetches.all.clear();
  return buffer.size();
}

MILLRACE_INLINE void remote_file::drop_parts_before(std::uint64_t offset_bytes) {
  bool any = false;
  for (auto it = parts_.begin(); it != parts_.end();) {
    if (it->fetch->end_byte() > offset_bytes || it->fetch->offset_bytes() == 0) {
      ++it;
      continue;
    }
    it->fetch->abandon();
    it = parts_.erase(it);
    any = true;
  }
  if (any) context_->engine.sweep();
}

MILLRACE_INLINE void remote_file::drop_unannounced_parts() {
  bool any = false;
  for (auto it = parts_.begin(); it != parts_.end();) {
    const bool is_announced = std::any_of(announced_.begin(), announced_.end(), [&](const byte_interval& r) {
      return it->fetch->offset_bytes() < r.end_byte && r.first_byte < it->fetch->end_byte();
    });
    if (is_announced || it->fetch->offset_bytes() == 0) {
      ++it;
      continue;
    }
    it->fetch->abandon();
    it = parts_.erase(it);
    any = true;
  }
  if (any) context_->engine.sweep();
}

MILLRACE_INLINE void remote_file::drop_all() noexcept {
  set_reading(false);
  if (parts_.empty()) return;
  for (const part& p : parts_) p.fetch->abandon();
  parts_.clear();
  context_->engine.sweep();
}

MILLRACE_INLINE void remote_file::set_reading(bool reading) noexcept {
  if (std::exchange(reading_, reading) == reading) return;
  if (reading) ++context_->readers;
  else --context_->readers;
}

}}}   // namespace millrace::detail
