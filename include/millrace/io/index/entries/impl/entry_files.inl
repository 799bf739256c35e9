// Definitions for entry_files.hpp.
#pragma once

#include <millrace/io/index/entries/entry_files.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE entry_file_cache::chunk entry_file_cache::find(const chunk_name& name) {
  const std::lock_guard lock(mutex_);
  const auto entry = chunks_.find(name);
  if (entry == chunks_.end()) return nullptr;
  entry->second.used_at = ++used_;
  return entry->second.bytes;
}

MILLRACE_RARE void entry_file_cache::add(const chunk_name& name, chunk added) {
  const std::lock_guard lock(mutex_);
  const std::size_t bytes = added->size();
  if (!chunks_.try_emplace(name, cached_chunk{std::move(added), ++used_}).second) return;
  held_bytes_ += bytes;
  while (held_bytes_ > limit_bytes_ && chunks_.size() > 1) {
    const auto oldest = std::min_element(chunks_.begin(), chunks_.end(), [](const auto& a, const auto& b) {
      return a.second.used_at < b.second.used_at;
    });
    held_bytes_ -= oldest->second.bytes->size();
    chunks_.erase(oldest);
  }
}

MILLRACE_INLINE void entry_file_cache::limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_bytes_ = bytes;
}

MILLRACE_INLINE std::size_t entry_file_cache::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

MILLRACE_INLINE entry_file::entry_file(const entry_file_options& o, read_meter& meter, entry_file_cache& cache)
    : file_(o.storage, o.name, meter), cache_(cache), local_(o.storage.is_local()), shard_(o.shard) {}

MILLRACE_INLINE std::size_t entry_file::read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  if (local_) return file_.read_at(offset_bytes, buffer);
  const entry_file_cache::chunk chunk = chunk_at(offset_bytes);
  const auto in_chunk = static_cast<std::size_t>(offset_bytes % entry_file_cache::chunk_bytes);
  if (in_chunk >= chunk->size()) return 0;
  const std::size_t bytes = std::min(buffer.size(), chunk->size() - in_chunk);
  if (bytes > 0) std::memcpy(buffer.data(), chunk->data() + in_chunk, bytes);
  return bytes;
}

MILLRACE_INLINE entry_file_cache::chunk entry_file::chunk_at(std::uint64_t offset_bytes) {
  const entry_file_cache::chunk_name name{shard_, offset_bytes / entry_file_cache::chunk_bytes};
  if (auto cached = cache_.find(name)) return cached;
  const std::uint64_t begin = name.second * entry_file_cache::chunk_bytes;
  const std::uint64_t end = static_cast<const stored_file&>(file_.file()).identity().size_bytes;
  std::vector<std::byte> read(
      static_cast<std::size_t>(std::min<std::uint64_t>(entry_file_cache::chunk_bytes, end - std::min(end, begin))));
  read.resize(read_fully(file_, begin, read));
  auto chunk = std::make_shared<const std::vector<std::byte>>(std::move(read));
  cache_.add(name, chunk);
  return chunk;
}

MILLRACE_RARE void entry_file::will_read(std::span<const byte_range> ranges) {
  if (local_) return;
  std::vector<byte_range> chunks;
  std::uint64_t next = 0;   // all chunks with lower numbers are announced or cached
  for (const byte_range& range : ranges) {
    if (range.size_bytes == 0) continue;
    const std::uint64_t last = (range.offset_bytes + range.size_bytes - 1) / entry_file_cache::chunk_bytes;
    for (std::uint64_t number = std::max(next, range.offset_bytes / entry_file_cache::chunk_bytes); number <= last;
         ++number)
      if (!cache_.find({shard_, number}))
        chunks.push_back({number * entry_file_cache::chunk_bytes, entry_file_cache::chunk_bytes});
    next = std::max(next, last + 1);
  }
  if (!chunks.empty()) file_.will_read(chunks);
}

}}}   // namespace millrace::detail
