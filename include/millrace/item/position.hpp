// position: the resume point of a run, as one line of text for a checkpoint.
//
//   std::string text = mr::to_text(position);          // "millrace version=1 seed=7 epoch=3 position=640000 ..."
//   mr::position from = mr::parse_position(text);      // data_error that describes the defect of the text
//   mr::detail::check_same(from, current);             // setup_error that lists the differences: data set, seed, ...
//
// Format: one printable line of fewer than 300 bytes. parse_position() also accepts an end of line. Numbers are
// decimal. The fields `data`, `digest`, `times` and `crc32c` are hexadecimal. `crc32c` is the CRC-32C of the text
// before this field. The text contains all settings that affect the order, because a resumed run must have the same
// values. The number of workers may change.
// Versions:
// - 6: for runs with an index; valid for any number of ranks.
// - 7: for runs without an index. Version 7 adds the point where a resumed run begins to read, `rank`, `ranks`, and a
//   hash of the files' modification times.
// - 8: for runs without an index that pack samples into rows. In addition to the fields of version 7, it contains the
//   number of tokens in the first row.
// - 1, 4 and 5: predecessors of 6, 7 and 8, from releases that computed another order of samples. A run that resumes
//   from such a text keeps this older order and the older version.
// - 2 and 3: predecessors of 4 and 5. Versions 2 and 3 require a run with only one lane. (Lanes are
//   interleaved parts of the order.)
//
// Digest: with an index, the texts of the ranks are equal except for `digest`. This field is a checksum of the samples
// that one rank has delivered. The sum of the digests of all ranks, modulo 2^64, is the digest of the run. Sum the
// digests before saving:
//   MPI_Allreduce(MPI_IN_PLACE, &position.digest, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
// If the program does not sum the digests, to_text() adds the field `shares`, the number of ranks. A run that resumes
// from such a text reports that its digests are not comparable with those of other runs.
//
// Fields of some runs:
// - `choice`, if the run omits or repeats samples: a checksum of the samples that the run uses.
// - `stride`, if the run mixes rows (stages/mix_rows.hpp): the distance between the two rows of a pair. Such a run may
//   resume with any number of ranks that divides the stride.
// - `packed_row` (length or max_cost) and `open_rows`, if the run packs samples into rows (stages/pack.hpp). Texts from
//   earlier releases lack these fields. A run that resumes from such a text does not compare the fields.
// - `shards` and `samples`: the size of the data set, for the error message if the data set has changed.
//
// Errors: see the example. Untrusted text is safe: the result is always a position or a data_error. Threads: the
// functions are pure; any thread may call them.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

/// The point at which a resumed run without an index begins to read.
struct replay_point {
  std::uint64_t pass = 0;      ///< number of the pass through the source
  std::uint64_t ordinal = 0;   ///< ordinal of the first sample to use, in this pass
  std::uint64_t rows = 0;      ///< rows after this point that the resumed run skips: already delivered or dropped
  std::uint64_t shard = 0;     ///< ordinal of the first shard to open, in the pass's order of shards
  std::uint64_t first = 0;     ///< number of samples in the earlier shards of the pass
  std::uint64_t held = 0;      ///< tokens in the row of the packing stage when the sample at `ordinal` arrives

  friend bool operator==(const replay_point&, const replay_point&) = default;
};

/// A copy of position::digest, in a run with several ranks. If position::digest still equals the copy, the user has not
/// summed the digests. Comparisons ignore this struct.
struct digest_share {
  std::uint64_t digest = 0;
  std::uint32_t ranks = 0;   ///< number of ranks; 0 if the digest is complete

  friend constexpr bool operator==(const digest_share&, const digest_share&) { return true; }
};

/// The size of the data set of a run, for errors. Comparisons ignore this struct.
struct data_counts {
  std::uint64_t shards = 0, samples = 0;   ///< 0 if unknown

  friend constexpr bool operator==(const data_counts&, const data_counts&) { return true; }
};

/// The resume point of a run: its settings and its progress.
struct position {
  /// The current versions for three kinds of runs: with an index, without an index, and with packing but without an
  /// index.
  static constexpr std::uint32_t index_version = 6;
  static constexpr std::uint32_t replay_version = 7;
  static constexpr std::uint32_t packing_version = 8;
  /// The preceding versions, for the same three kinds of runs.
  static constexpr std::uint32_t older_index_version = 1;
  static constexpr std::uint32_t older_replay_version = 4;
  static constexpr std::uint32_t older_packing_version = 5;
  /// The versions that precede older_replay_version and older_packing_version.
  static constexpr std::uint32_t oldest_replay_version = 2;
  static constexpr std::uint32_t oldest_packing_version = 3;

  std::uint32_t version = index_version;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t next_position = 0;   ///< first position in the epoch whose sample was not yet delivered
  std::uint32_t lanes = 0;           ///< 0 for a mix, in which each source has its own number of lanes
  std::uint64_t window = 0;          ///< shuffle window in samples; 0 if not shuffled
  std::uint64_t global_batch = 0;    ///< rows of a batch, summed over all ranks
  std::uint64_t epoch_batches = 0;   ///< batches of an epoch; 0 if an epoch is one pass, 2^64 - 1 if it is endless
  bool drop_last = true;
  std::uint64_t data_set = 0;   ///< fingerprint of names, sizes and counts
  std::uint64_t choice = 0;     ///< with an index: checksum of the used samples; 0 if each sample is used once
  std::uint32_t stride = 0;     ///< distance between the two rows of a mixed pair; 0 if rows are not mixed
  std::uint64_t digest = 0;     ///< digest of the delivered samples: of this rank, or the sum over ranks
  // Present in all versions except 1 and 6:
  std::uint64_t step = 0;   ///< number of batches of the run so far
  replay_point replay{};
  std::uint32_t ranks = 0;   ///< number of ranks for which the point is valid; 0 for any number
  std::uint32_t rank = 0;    ///< the rank for which the point is valid; equal to `ranks` if it is valid for all
  // Present in versions 4, 5, 7 and 8, which have no digest:
  std::uint32_t times = 0;   ///< hash of the modification times of the files; 0 if unknown
  // Present in versions 4, 5, 7 and 8 of runs that pack samples into rows:
  /// The limits of the rows of pack() and pack_best_fit(). A resumed run must have the same limits, because the content
  /// of the rows depends on them.
  struct packing_limits {
    std::uint64_t row = 0;         ///< tokens of a row (length), or its maximum cost (max_cost); 0 if unknown
    std::uint64_t open_rows = 0;   ///< number of rows that are filled at the same time

    friend bool operator==(const packing_limits&, const packing_limits&) = default;
  };
  packing_limits packing{};
  digest_share share{};   ///< used only in versions 1 and 6
  data_counts counts{};   ///< size of the data set

  /// Returns whether the point belongs to a run with an index.
  bool has_index() const noexcept { return version == index_version || version == older_index_version; }
  /// Returns whether the point belongs to a run in which pack() builds rows of tokens.
  bool packs() const noexcept {
    return version == packing_version || version == older_packing_version || version == oldest_packing_version;
  }
  /// Returns whether the version is one of the oldest versions.
  bool is_oldest() const noexcept { return version == oldest_replay_version || version == oldest_packing_version; }
  /// Returns whether the version is older than the current versions.
  bool is_older() const noexcept { return version < index_version; }
  /// Returns a number that is equal on all ranks whose resume points belong to the same run and the same step. Compare
  /// the numbers of all ranks before they resume, for example by MPI_Allreduce with MPI_MIN and MPI_MAX. If the numbers
  /// differ, the ranks have loaded different checkpoints.
  std::uint32_t place() const;
  /// Returns true if `digest` is the digest of one of several ranks, because the user has not summed the digests.
  bool is_share() const noexcept { return share.ranks > 1 && digest == share.digest; }

  friend bool operator==(const position&, const position&) = default;
};

namespace detail {

struct position_field {
  const char* name;
  bool hexadecimal = false;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max(), min = 0;
};

/// Calls visit(field, member) for each field, in the order of the text.
template <class Position, class Visit>
MILLRACE_RARE void for_each_field(Position& p, const Visit& visit) {
  constexpr std::uint64_t narrow = std::numeric_limits<std::uint32_t>::max();
  visit(position_field{.name = "version", .max = narrow}, p.version);
  visit(position_field{.name = "seed"}, p.seed);
  visit(position_field{.name = "epoch"}, p.epoch);
  visit(position_field{.name = "position"}, p.next_position);
  visit(position_field{.name = "lanes", .max = narrow}, p.lanes);
  visit(position_field{.name = "window"}, p.window);
  visit(position_field{.name = "global_batch"}, p.global_batch);
  visit(position_field{.name = "epoch_batches"}, p.epoch_batches);
  visit(position_field{.name = "drop_last", .max = 1}, p.drop_last);
  visit(position_field{.name = "data", .hexadecimal = true}, p.data_set);
  if (p.has_index() || p.is_oldest()) visit(position_field{.name = "digest", .hexadecimal = true}, p.digest);
  else visit(position_field{.name = "times", .hexadecimal = true, .max = narrow}, p.times);
  if (p.has_index()) return;
  visit(position_field{.name = "step"}, p.step);
  visit(position_field{.name = "pass"}, p.replay.pass);
  visit(position_field{.name = "place"}, p.replay.ordinal);
  visit(position_field{.name = "rows"}, p.replay.rows);
  visit(position_field{.name = "part"}, p.replay.shard);
  visit(position_field{.name = "first"}, p.replay.first);
  visit(position_field{.name = "ranks", .max = narrow}, p.ranks);
  visit(position_field{.name = "rank", .max = narrow}, p.rank);
  if (p.packs()) visit(position_field{.name = "held"}, p.replay.held);
}

inline constexpr position_field choice_field{.name = "choice", .hexadecimal = true, .min = 1};
inline constexpr position_field stride_field{
    .name = "stride", .max = std::numeric_limits<std::uint32_t>::max(), .min = 1};
inline constexpr position_field packed_row_field{.name = "packed_row", .min = 1};
inline constexpr position_field open_rows_field{.name = "open_rows", .min = 1};
inline constexpr position_field shares_field{
    .name = "shares", .max = std::numeric_limits<std::uint32_t>::max(), .min = 2};
inline constexpr position_field shards_field{.name = "shards", .min = 1};
inline constexpr position_field samples_field{.name = "samples", .min = 1};
inline constexpr std::string_view position_mark = "millrace";

inline std::string field_text(const position_field& field, std::uint64_t value) {
  constexpr std::uint64_t narrow = std::numeric_limits<std::uint32_t>::max();
  return field.hexadecimal ? hex(value, field.max > narrow ? 16 : 8) : std::to_string(value);
}

std::uint32_t checksum_of(std::string_view text) noexcept;

/// Parses the text of a resume point, field by field from the front.
class position_reader {
 public:
  explicit position_reader(std::string_view text);

  bool has(const position_field& field) const { return left_.starts_with(" " + std::string(field.name) + "="); }

  std::uint64_t read(const position_field& field);

  void read_checksum();

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  std::string_view text_, left_;
};

}   // namespace detail

/// Returns the resume point as one line of text. The comment at the top of this header describes the format.
std::string to_text(const position& p);

/// Returns the resume point in `text`. Throws data_error if the text is damaged or of an unknown version.
position parse_position(std::string_view text);

namespace detail {

/// Returns "147 shards and 1000 samples"; empty if the counts are unknown.
std::string counts_text(const data_counts& counts);

/// Checks that a run with the settings of `current` may resume at `from`. Throws setup_error that lists the
/// differences. Does not compare the progress of the two runs (epoch, position, digest), nor the times of their files.
void check_same(const position& from, const position& current);

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/position.inl>
#endif
