// Definitions for bytes.hpp.
#pragma once

#include <millrace/item/bytes.hpp>

#include <millrace/item/owner.hpp>
#include <millrace/item/record.hpp>   // location_of()

#include <algorithm>
#include <limits>
#include <new>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::size_t put_entries_table(block& b, std::size_t at, std::span<const entries_place> rows) noexcept {
  constexpr std::size_t unit = alignof(entries_place);
  static_assert(sizeof(std::size_t) == unit);
  const std::size_t table = (at + unit - 1) / unit;
  if (rows.empty() || table == 0 || table > std::numeric_limits<std::uint32_t>::max()) return at;
  const std::size_t count = rows.size();
  std::memcpy(b.data() + table * unit, &count, sizeof count);
  std::memcpy(b.data() + table * unit + sizeof count, rows.data(), rows.size_bytes());
  b.entries_table = static_cast<std::uint32_t>(table);
  return table * unit + sizeof count + rows.size_bytes();
}

MILLRACE_INLINE std::span<block* const> parts_of(block& b) noexcept {
  return {reinterpret_cast<block* const*>(b.data()), b.parts};
}

MILLRACE_INLINE void release_parts(block& b) noexcept {
  for (block* const part : parts_of(b)) release_block(part);
  b.parts = 0;
}

MILLRACE_INLINE std::span<const std::byte> find_entries(block& b, std::span<const std::byte> view) noexcept {
  for (block* const part : parts_of(b))
    if (const auto entries = find_entries(*part, view); !entries.empty()) return entries;
  if (b.entries_table == 0) return {};
  const std::byte* const table = b.data() + std::size_t{b.entries_table} * alignof(entries_place);
  std::size_t count;
  std::memcpy(&count, table, sizeof count);
  const auto* const rows = reinterpret_cast<const entries_place*>(table + sizeof count);
  const auto data_at = static_cast<std::size_t>(view.data() - b.data());
  const auto* const entry = std::lower_bound(rows, rows + count, data_at,
                                             [](const entries_place& row, std::size_t at) { return row.data_at < at; });
  if (entry == rows + count || entry->data_at != data_at || entry->data_size != view.size()) return {};
  return {b.data() + entry->entries_at, entry->entries_size};
}

MILLRACE_INLINE pool_state::~pool_state() {
  for (auto& list : idle)
    for (block* b : list) destroy(b);
}

MILLRACE_INLINE block* pool_state::pop_idle(std::size_t size_class) noexcept {
  // Prefers a larger idle block to a new one. Otherwise each class would retain as many blocks as it once had in use.
  for (std::size_t c = size_class; c < std::min(size_class + larger_classes + 1, classes); ++c) {
    if (idle[c].empty()) continue;
    block* const reused = idle[c].back();
    idle[c].pop_back();
    idle_bytes -= reused->capacity_bytes;
    return reused;
  }
  return nullptr;
}

MILLRACE_INLINE void pool_state::destroy(block* b) noexcept {
  show_to_readers(*b);
  b->~block();
  ::operator delete(static_cast<void*>(b), std::align_val_t{alignof(block)});
}

}   // namespace detail

MILLRACE_INLINE block_pool::block_pool(std::size_t idle_limit_bytes)
    : state_(detail::make_shared_object<detail::pool_state>(idle_limit_bytes)) {}

MILLRACE_INLINE detail::block_ref block_pool::take(std::size_t bytes) {
  const std::size_t size_class = detail::size_class_of(bytes);
  detail::block* block = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    block = state_->pop_idle(size_class);
    if (auto& list = state_->idle[size_class]; !block && list.capacity() == 0) list.reserve(1024);
  }
  if (block) {
    detail::show_to_readers(*block);
  } else {
    const std::size_t capacity = detail::bytes_of_class(size_class);
    void* memory = ::operator new(sizeof(detail::block) + capacity, std::align_val_t{alignof(detail::block)});
    block = new (memory) detail::block;
    block->capacity_bytes = capacity;
    block->size_class = static_cast<std::uint32_t>(size_class);
  }
  block->home = state_;
  return detail::block_ref(block);
}

MILLRACE_INLINE bytes bytes::owned(std::span<const std::byte> data, std::string_view name) {
  auto block = block_pool(0).take(data.size() + name.size());   // a pool without idle blocks frees it to the heap
  std::byte* const base = block.get()->data();
  if (!data.empty()) std::memcpy(base, data.data(), data.size());
  if (!name.empty()) std::memcpy(base + data.size(), name.data(), name.size());
  return {std::move(block), {base, data.size()}, {reinterpret_cast<const char*>(base + data.size()), name.size()}};
}

MILLRACE_INLINE bytes block_pool::copy(std::span<const std::byte> data, std::string_view name) {
  auto block = take(data.size());
  if (!data.empty()) std::memcpy(block.get()->data(), data.data(), data.size());
  const std::span<const std::byte> view(block.get()->data(), data.size());
  return {std::move(block), view, name};
}

MILLRACE_INLINE std::string text(const bytes& field) {
  if (detail::is_utf8(field.text())) return std::string(field.text());
  try {
    detail::throw_no_scalar(field.text(), field.name(), " is not valid UTF-8", "Convert the data set's text to UTF-8");
  } catch (error& e) {
    e.locate(detail::location_of(field));
    throw;
  }
}

}}   // namespace millrace
