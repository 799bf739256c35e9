// Definitions for token_data.hpp.
#pragma once

#include <millrace/sources/token_data.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/text.hpp>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE auto token_blocks::find_or_add(const name& n) -> std::shared_ptr<block> {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<block>& b = blocks_[n];
  if (!b) b = std::make_shared<block>();
  b->last_request = ++requests_;
  return b;
}

MILLRACE_INLINE void token_blocks::drop(const name& n, block& b) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(b.is_dropped, true)) return;
  blocks_.erase(n);
}

MILLRACE_INLINE void token_blocks::retain(block& b) {
  const std::lock_guard lock(mutex_);
  if (b.is_dropped) return;
  b.counted_bytes = b.data.size();
  retained_bytes_ += b.counted_bytes;
  while (retained_bytes_ > options_.limit_bytes) {
    auto oldest = blocks_.end();
    for (auto at = blocks_.begin(); at != blocks_.end(); ++at)
      if (at->second.get() != &b && at->second->counted_bytes > 0 &&
          (oldest == blocks_.end() || at->second->last_request < oldest->second->last_request))
        oldest = at;
    if (oldest == blocks_.end()) return;
    retained_bytes_ -= oldest->second->counted_bytes;
    oldest->second->is_dropped = true;
    blocks_.erase(oldest);
  }
}

MILLRACE_INLINE token_data::token_data(const file_list& files, const token_data_options& o)
    : files_(files), options_(o), windows_(files.size()), sizes_(files.size()) {
  constexpr std::size_t max_threads = 32;
  idle_.reserve(max_open + 1);   // release() must not allocate memory, because destructors call it
  run_concurrently(files_.size(), max_threads, [&](std::size_t i) {
    metered_file source(files_.at(), files_.name(i), reads_);
    sizes_[i] = size_of_open(files_.at(), source.file());
    windows_[i] = read_token_windows({.at = files_.at(), .name = files_.name(i), .file = source.file()}, o.layout,
                                     o.windows);
  });
  std::uint64_t most = 0;
  const std::uint64_t rule[] = {files_.size(), o.windows.length, o.windows.stride, o.windows.keep_short};
  if (!o.windows.documents)
    for (const std::uint64_t number : rule) fingerprint_ = combine_keys(fingerprint_, number);
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const token_windows& w = windows_[i];
    const token_layout& l = w.layout();
    counts_.push_back(w.count());
    most = std::max(most, l.tokens);
    window_bytes_ += w.window_bytes();
    const std::string& path = files_.name(i);
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    for (const std::uint64_t number :
         {digest_bytes(bytes_of(name)), sizes_[i], l.first_byte, std::uint64_t{l.type.bytes}})
      fingerprint_ = combine_keys(fingerprint_, number);
    if (o.windows.documents) fingerprint_ = combine_keys(fingerprint_, w.digest_of_documents());
  }
  if (std::any_of(counts_.begin(), counts_.end(), [](std::uint64_t n) { return n > 0; })) return;
  if (o.windows.documents)
    throw setup_error("no file of token_files() has a document with tokens", "Check the program that wrote the files",
                      {.shard = files_.size() > 0 ? files_.name(0) : std::string()});
  throw setup_error("no file of token_files() has a complete window: got at most " + std::to_string(most) +
                        " tokens in a file, expected " + std::to_string(o.windows.length),
                    "Set a smaller token_files_options::length, or set keep_short and add pack() to the flow",
                    {.shard = files_.size() > 0 ? files_.name(0) : std::string()});
}

MILLRACE_INLINE error_location token_data::location_of(const located_sample& s) const {
  return {.stage = "tokens",
          .shard = files_.name(s.shard),
          .key = std::to_string(s.index),
          .offset_bytes = windows_[s.shard].place(s.index).offset_bytes};
}

MILLRACE_INLINE std::size_t token_data::expect(const expected_order& order) {
  in_order_ = order.window <= 1;
  std::uint64_t samples = 0, bytes = 0;
  for (const token_windows& w : windows_) {
    samples += w.count();
    bytes += w.spanned_bytes();
  }
  const block_size size = block_size::choose(
      order, {.samples = samples, .sample_bytes = bytes / samples, .is_local = files_.at().is_local()});
  if (size.held_bytes == 0) return 0;
  blocks_.emplace(token_blocks::options{.block_bytes = static_cast<std::size_t>(size.bytes),
                                        .limit_bytes = static_cast<std::size_t>(size.held_bytes)});
  return static_cast<std::size_t>(size.held_bytes);
}

MILLRACE_INLINE auto token_data::acquire(std::size_t file) -> std::unique_ptr<open_file> {
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(idle_.rbegin(), idle_.rend(), [file](const auto& o) { return o->file == file; });
    if (at != idle_.rend()) {
      auto opened = std::move(*at);
      idle_.erase(std::next(at).base());
      return opened;
    }
  }
  std::unique_ptr<open_file> opened(new open_file{file, {files_.at(), files_.name(file), reads_}});
  const std::uint64_t bytes = size_of_open(files_.at(), opened->source.file());
  if (bytes != sizes_[file])
    throw io_error("the file was replaced since the start of the session: got " + std::to_string(bytes) +
                       " bytes, expected " + std::to_string(sizes_[file]),
                   "Write new data under a new name, and start again", {.shard = files_.name(file)});
  return opened;
}

MILLRACE_INLINE void token_data::release(std::unique_ptr<open_file> opened) noexcept {
  std::unique_ptr<open_file> oldest;   // its destructor closes the file after the lock is released
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(opened));
  if (idle_.size() <= max_open) return;
  oldest = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

MILLRACE_INLINE token_data::access::access(token_data& data, std::span<const ordered_sample> samples) : data_(&data) {
  const auto place_of = [&](const located_sample& s) { return data.windows_[s.shard].place(s.index); };
  if (!samples.empty()) {
    const byte_range place = place_of(samples.back().sample);
    last_file_ = static_cast<std::size_t>(samples.back().sample.shard);
    end_bytes_ = place.offset_bytes + place.size_bytes;
  }
  if (samples.size() > 1 && samples[0].sample.shard == samples[1].sample.shard) {
    const byte_range one = place_of(samples[0].sample), next = place_of(samples[1].sample);
    is_sparse_ = next.offset_bytes > one.offset_bytes + 2 * one.size_bytes;
  }
  if (!data.files_.at().is_local()) announce(samples);
}

MILLRACE_INLINE token_data::access::~access() {
  for (auto& opened : open_) data_->release(std::move(opened));
}

MILLRACE_INLINE packed token_data::access::read(const located_sample& s) {
  const auto file = static_cast<std::size_t>(s.shard);
  const token_windows& windows = data_->windows_[file];
  const std::span<const std::byte> stored = fetch(file, windows.place(s.index));
  checksum_ = crc32c(stored);
  return window_of(
      stored, {.of = windows, .number = s.index, .max_id = data_->options_.max_id, .file = data_->files_.name(file)});
}

MILLRACE_INLINE std::span<const std::byte> token_data::access::fetch(std::size_t file, const byte_range& place) {
  if (data_->blocks_) return from_blocks(file, place);
  if (data_->in_order_ && !is_sparse_) return from_piece(file, place);
  buffer_.resize(static_cast<std::size_t>(place.size_bytes));
  static_cast<void>(read_fully(source_of(file), place.offset_bytes, buffer_));
  return buffer_;
}

MILLRACE_INLINE std::span<const std::byte> token_data::access::from_piece(std::size_t file, const byte_range& place) {
  const std::uint64_t end = place.offset_bytes + place.size_bytes;
  const bool is_buffered = file == buffer_file_ && place.offset_bytes >= buffer_at_ &&
                           end <= buffer_at_ + buffer_.size();
  if (!is_buffered) {
    const std::uint64_t end_of_reads = file == last_file_ && end_bytes_ >= end ? end_bytes_ : data_->sizes_[file];
    const std::uint64_t piece = std::max<std::uint64_t>(place.size_bytes, piece_bytes);
    buffer_.resize(static_cast<std::size_t>(std::min(piece, end_of_reads - place.offset_bytes)));
    buffer_file_ = file;
    buffer_at_ = place.offset_bytes;
    try {
      static_cast<void>(read_fully(source_of(file), buffer_at_, buffer_));
    } catch (...) {
      buffer_.clear();
      throw;
    }
  }
  return std::span<const std::byte>(buffer_).subspan(static_cast<std::size_t>(place.offset_bytes - buffer_at_),
                                                     static_cast<std::size_t>(place.size_bytes));
}

MILLRACE_INLINE std::span<const std::byte> token_data::access::from_blocks(std::size_t file, const byte_range& place) {
  const std::uint64_t bytes = data_->blocks_->block_bytes();
  const std::uint64_t end = place.offset_bytes + place.size_bytes;
  const auto part = [&](std::uint64_t number) -> std::span<const std::byte> {
    const std::uint64_t at = number * bytes, from = std::max(place.offset_bytes, at) - at;
    return std::span<const std::byte>(*block({file, number}))
        .subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(std::min(end - at, bytes) - from));
  };
  const std::uint64_t first = place.offset_bytes / bytes, last = (end - 1) / bytes;
  if (first == last) return part(first);
  buffer_.clear();
  for (std::uint64_t number = first; number <= last; ++number) {
    const auto piece = part(number);
    buffer_.insert(buffer_.end(), piece.begin(), piece.end());
  }
  return buffer_;
}

MILLRACE_INLINE std::shared_ptr<const token_blocks::bytes> token_data::access::block(const token_blocks::name& name) {
  if (block_ && block_name_ == name) return block_;
  block_ = data_->blocks_->get(name, [&](token_blocks::bytes& to) {
    const std::uint64_t bytes = data_->blocks_->block_bytes(), at = name.number * bytes;
    to.resize(static_cast<std::size_t>(std::min(bytes, data_->sizes_[name.file] - at)));
    static_cast<void>(read_fully(source_of(static_cast<std::size_t>(name.file)), at, to));
  });
  block_name_ = name;
  return block_;
}

MILLRACE_INLINE void token_data::access::announce(std::span<const ordered_sample> samples) {
  std::vector<std::pair<std::size_t, byte_range>> reads;
  for (const ordered_sample& w : samples) {
    const auto file = static_cast<std::size_t>(w.sample.shard);
    byte_range place = data_->windows_[file].place(w.sample.index);
    if (!data_->blocks_) {
      reads.push_back({file, place});
      continue;
    }
    const std::uint64_t bytes = data_->blocks_->block_bytes(), end = place.offset_bytes + place.size_bytes;
    for (std::uint64_t number = place.offset_bytes / bytes; number * bytes < end; ++number)
      if (!data_->blocks_->has({file, number})) reads.push_back({file, {number * bytes, bytes}});
  }
  std::stable_sort(reads.begin(), reads.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<byte_range> ranges;
  for (std::size_t first = 0, end = 0; first < reads.size(); first = end) {
    ranges.clear();
    for (; end < reads.size() && reads[end].first == reads[first].first; ++end) {
      const byte_range& r = reads[end].second;
      const auto same = [&](const byte_range& other) { return other.offset_bytes == r.offset_bytes; };
      if (!data_->blocks_ || std::none_of(ranges.begin(), ranges.end(), same)) ranges.push_back(r);
    }
    open_.push_back(data_->acquire(reads[first].first));
    open_.back()->source.will_read(ranges);
  }
}

MILLRACE_INLINE byte_source& token_data::access::source_of(std::size_t file) {
  const auto at = std::find_if(open_.begin(), open_.end(), [file](const auto& o) { return o->file == file; });
  if (at != open_.end()) return (*at)->source;
  const bool is_local = data_->files_.at().is_local();
  if (is_local && !open_.empty()) {
    data_->release(std::move(open_.back()));
    open_.pop_back();
  }
  open_.push_back(data_->acquire(file));
  return open_.back()->source;
}

}}}   // namespace millrace::detail
