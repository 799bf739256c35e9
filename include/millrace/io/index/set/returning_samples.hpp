// Counts the samples of a data set that have the key of an earlier sample in their shard. The samples of a shard are
// counted when the index of the shard is loaded.
//
//   if (const auto samples = shard.exchange_returning_keys()) returning.add(samples, names, number);
//   returning.report(counts);                             // samples since the last call
//
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/io/file/name_list.hpp>
#include <millrace/io/index/set/indexed_shard.hpp>
#include <millrace/io/tar/read/returning_keys.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The samples that were counted, but not reported yet.
class returning_samples {
 public:
  /// Counts samples of shard `number` of a data set.
  void add(std::uint64_t samples, const name_list& names, std::size_t number) noexcept {
    const std::lock_guard lock(mutex_);
    names_ = names;
    shard_ = number;
    samples_ += samples;
  }
  /// Adds the samples that `others` has not reported.
  void add(returning_samples& others) noexcept {
    if (const std::uint64_t samples = others.samples_.exchange(0); samples > 0)
      add(samples, *others.names_, others.shard_);
  }

  /// Reports the samples: adds them to the counts of events, and sends a notice with the name of one shard.
  void report(event_counts& counts) noexcept {
    if (samples_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex_);
    if (const std::uint64_t samples = samples_.exchange(0); samples > 0)
      report_returning_keys(counts, samples, names_->view(shard_));
  }

 private:
  std::atomic<std::uint64_t> samples_{0};
  std::mutex mutex_;   // guards the members below
  std::optional<name_list> names_;
  std::size_t shard_ = 0;
};

/// Searches for another sample with this key, which does not begin at `own_offset_bytes`. Returns the first match, or
/// nothing. Such samples exist if the members of a sample are not adjacent in a shard.
inline std::optional<other_piece> find_other_piece(const shard_index& index, std::string_view key,
                                                   std::uint64_t own_offset_bytes) {
  constexpr std::size_t max_text_bytes = 200;
  for (std::uint32_t i = 0; i < index.samples(); ++i) {
    const indexed_sample s = index.sample(i);
    if (s.key != key || s.offset_bytes == own_offset_bytes) continue;
    other_piece piece{.offset_bytes = s.offset_bytes};
    for (std::uint32_t m = s.first_member; m < s.end_member && piece.fields.size() < max_text_bytes; ++m)
      piece.fields += (piece.fields.empty() ? "'" : ", '") + printable(index.member(m).field, 60) + "'";
    return piece;
  }
  return std::nullopt;
}

}}}   // namespace millrace::detail
