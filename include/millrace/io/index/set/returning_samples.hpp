// Counts the samples of a data set that have the key of an earlier sample in their shard. Counts a shard when its index
// is loaded.
//
//   mr::detail::shard_index& index = returning.count(shard.load(name, files), shard, number);
//   returning.report(counts, names);                             // samples since the last call
//
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/io/file/name_list.hpp>
#include <millrace/io/index/set/indexed_shard.hpp>
#include <millrace/io/tar/read/returning_keys.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The samples that were counted, but not reported yet.
class returning_samples {
 public:
  /// At the first use of a shard's index, adds the number of samples with the key of an earlier sample. Returns the
  /// index.
  shard_index& count(shard_index& index, indexed_shard& shard, std::size_t number) noexcept {
    if (const std::uint64_t samples = shard.exchange_returning_keys(); samples > 0) [[unlikely]] {
      first_shard_ = number;
      samples_ += samples;
    }
    return index;
  }

  /// Reports the samples: adds them to the counts of events, and sends a notice with the name of one shard.
  void report(event_counts& counts, const name_list& names) noexcept {
    if (samples_.load(std::memory_order_relaxed) == 0) return;
    if (const std::uint64_t samples = samples_.exchange(0); samples > 0)
      report_returning_keys(counts, samples, names.view(first_shard_));
  }

 private:
  std::atomic<std::uint64_t> samples_{0};
  std::atomic<std::size_t> first_shard_{0};
};

/// If the members of one sample are separated in a shard, the index has several samples with their key. Returns the
/// first of these samples that does not begin at `own_offset_bytes`, or nothing.
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

}}}  // namespace millrace::detail
