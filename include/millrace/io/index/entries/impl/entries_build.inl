// Definitions for entries_build.hpp.
#pragma once

#include <millrace/io/index/entries/entries_build.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Builds the entries of a shard piece by piece.
class entries_build {
 public:
  entries_build(const entries_job& job, shard_index& index)
      : job_(job),
        index_(index),
        sizes_(index.members()),
        pieces_((index.samples() + samples_of_piece - 1) / samples_of_piece) {}

  MILLRACE_RARE built_entries run() {
    std::vector<std::thread> others;
    const std::size_t threads = std::clamp<std::size_t>(job_.threads, 1, std::max<std::size_t>(1, pieces_.size()));
    try {
      start_threads(others, threads - 1, [this](std::size_t) { work(); });
    } catch (...) {
      next_ = pieces_.size();
      for (auto& other : others) other.join();
      throw;
    }
    work();
    for (auto& other : others) other.join();
    if (failure_) std::rethrow_exception(failure_);
    return join();
  }

 private:
  static constexpr std::uint32_t samples_of_piece = 64;

  MILLRACE_RARE void work() noexcept {
    try {
      block_pool pool;
      const auto source = open_file(job_.storage, job_.shard);
      indexed_reader reader(*source, index_, pool, {.fields = {}});
      for (std::size_t piece = next_.fetch_add(1); piece < pieces_.size(); piece = next_.fetch_add(1))
        build_piece(piece, reader);
    } catch (...) {
      next_ = pieces_.size();
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  MILLRACE_RARE void build_piece(std::size_t piece, indexed_reader& reader) {
    const auto first = static_cast<std::uint32_t>(piece * samples_of_piece);
    std::vector<std::uint32_t> numbers(std::min(samples_of_piece, index_.samples() - first));
    std::iota(numbers.begin(), numbers.end(), first);
    std::uint64_t bytes = 0;
    constexpr std::size_t batch_samples = 8;
    for (std::span<const std::uint32_t> rest = numbers; !rest.empty();) {
      const auto now = rest.first(std::min(batch_samples, rest.size()));
      rest = rest.subspan(now.size());
      reader.announce(now);
      std::vector<record> records(now.size());
      if (reader.read(now, records) < now.size()) ignore_damage(reader.take_failure());
      for (std::size_t i = 0; i < now.size(); ++i) bytes += add_sample(now[i], records[i], pieces_[piece]);
    }
    if (job_.done) job_.done(numbers.size(), bytes);
  }

  /// A damaged sample has no entries. Any other error is rethrown.
  static void ignore_damage(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const data_error&) {}
  }

  MILLRACE_RARE std::uint64_t add_sample(std::uint32_t number, const record& sample, std::vector<std::byte>& piece) {
    const indexed_sample expected = index_.sample(number);
    std::uint64_t bytes = 0;
    if (sample.empty() || sample.field_count() != expected.end_member - expected.first_member) {
      ++unreadable_;
      return bytes;
    }
    for (std::uint32_t m = expected.first_member; m < expected.end_member; ++m) {
      const millrace::bytes payload = sample.field(m - expected.first_member);
      bytes += payload.size();
      if (!index_.member(m).in_one_piece || payload.empty()) continue;
      const std::vector<std::byte> entries = job_.build(payload.name(), payload);
      if (entries.empty() || entries.size() > payload.size()) continue;
      const std::uint32_t known_checksum = index_.checksum(m);
      const std::uint32_t checksum = crc32c(entries, known_checksum != 0 ? known_checksum : crc32c(payload));
      const auto checksum_bytes = std::as_bytes(std::span(&checksum, 1));
      piece.insert(piece.end(), checksum_bytes.begin(), checksum_bytes.end());
      piece.insert(piece.end(), entries.begin(), entries.end());
      sizes_[m] = static_cast<std::uint32_t>(entry_table::checksum_bytes + entries.size());
    }
    return bytes;
  }

  MILLRACE_RARE built_entries join() {
    entry_table table{.built = true, .begin_at = entries_begin_at(index_.columns().counts), .ends = std::move(sizes_)};
    built_entries result{.pieces = std::move(pieces_), .unreadable = unreadable_};
    std::uint64_t end = 0;
    for (std::size_t piece = 0; piece < result.pieces.size(); ++piece) {
      const auto first = static_cast<std::uint32_t>(piece * samples_of_piece);
      const std::uint32_t last = std::min(index_.samples() - 1, first + samples_of_piece - 1);
      if (end + result.pieces[piece].size() > entry_table::largest_bytes) result.pieces[piece].clear();
      for (std::uint32_t m = index_.sample(first).first_member; m < index_.sample(last).end_member; ++m) {
        if (!result.pieces[piece].empty()) end += table.ends[m];
        table.ends[m] = static_cast<std::uint32_t>(end);
      }
    }
    index_.set_entries(std::move(table));
    return result;
  }

  const entries_job& job_;
  shard_index& index_;
  std::vector<std::uint32_t> sizes_;   // for each member, the size of its entries with their checksum
  entry_pieces pieces_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> unreadable_{0};
  std::mutex mutex_;   // guards the failure
  std::exception_ptr failure_;
};

MILLRACE_RARE built_entries build_entries(const entries_job& job, shard_index& index) {
  return entries_build(job, index).run();
}

}}}   // namespace millrace::detail
