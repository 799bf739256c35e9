// position: the resume point, which says where a run stands in one line of text for a checkpoint.
//
//   std::string text = mr::to_text(position);          // "millrace version=1 seed=7 epoch=3 position=640000 ..."
//   mr::position from = mr::parse_position(text);      // data_error that names what is wrong with the text
//   mr::detail::check_same(from, current);             // setup_error that names what differs: data set, seed, ...
//
// Format: fewer than 300 bytes, printable, without an end of line; parse_position() accepts one at the end. Numbers are
// decimal; data, digest, times and checksum are hexadecimal. `crc32c` is the CRC-32C of everything before it, so any
// damage is refused. The text holds everything that the order depends on: none of that may change. It excludes the
// number of workers and the read-ahead: both may change.
// Version 1 is the order of an index, for any number of ranks. Version 4 is the order of a source without an index. It
// adds where reading begins again, for which ranks, and a hash of the times of the files' last changes. Version 5 is
// version 4 for samples that are packed into rows. It adds the number of tokens that the first row already holds.
// Versions 2 and 3 are older forms of 4 and 5: lanes did not wait for each other between passes. With one lane the
// order is the same, so they are accepted. With several lanes they are refused.
// With an index, the texts of all ranks differ only in `digest`. Each rank has the digest of its own samples. The
// wrapping sum of all ranks' digests is the digest of the run. Sum them before saving:
//   MPI_Allreduce(MPI_IN_PLACE, &position.digest, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
// If the digest is unchanged since b.position(), the text has the field `shares`, the number of ranks. A run that
// resumes from such a text is not refused. It reports once that its digests will mean nothing.
// Errors: as above. The text is not trusted: any text gives a position or a data_error. Threads: pure.
#pragma once

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// The point at which a run without an index begins to read again, in order to continue behind a batch.
struct replay_point {
  std::uint64_t pass = 0;    ///< number of the pass through the source
  std::uint64_t ordinal = 0;   ///< ordinal in that pass of the first sample that is made into rows
  std::uint64_t rows = 0;    ///< rows from that sample on that were already delivered or dropped
  std::uint64_t shard = 0;    ///< ordinal of the first shard to open, in the pass's order of shards
  std::uint64_t first = 0;   ///< number of samples in the shards of the pass before it
  std::uint64_t held = 0;    ///< tokens in the row of the packing stage when the sample at `ordinal` arrives

  friend bool operator==(const replay_point&, const replay_point&) = default;
};

/// The digest of one of several ranks, kept to see whether the user summed it.
/// Comparisons ignore it, because it does not say where a run stands.
struct digest_share {
  std::uint64_t digest = 0;
  std::uint32_t ranks = 0;   ///< number of ranks; 0: no other rank had samples

  friend constexpr bool operator==(const digest_share&, const digest_share&) { return true; }
};

}  // namespace detail

/// The resume point of a run: its settings, and how far it is.
struct position {
  /// Version of the text and of the order behind it. A build with another order has another version.
  static constexpr std::uint32_t known_version = 1;
  static constexpr std::uint32_t replay_version = 4;
  static constexpr std::uint32_t packing_version = 5;
  /// The versions of these two from when lanes did not wait for each other between passes.
  static constexpr std::uint32_t older_replay_version = 2;
  static constexpr std::uint32_t older_packing_version = 3;

  std::uint32_t version = known_version;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t next_position = 0;   ///< the epoch's first position that was not delivered
  std::uint32_t lanes = 0;
  std::uint64_t window = 0;          ///< shuffle window in samples; 0: not shuffled
  std::uint64_t global_batch = 0;    ///< rows of a batch, summed over all ranks
  std::uint64_t epoch_batches = 0;   ///< batches of an epoch; 0: an epoch is one pass; 2^64 - 1: endless
  bool drop_last = true;
  std::uint64_t data_set = 0;        ///< fingerprint of names, sizes and counts
  std::uint64_t digest = 0;          ///< digest of the delivered samples: of this rank, or the sum over ranks
  // In all versions but 1:
  std::uint64_t step = 0;            ///< number of batches of the run so far
  detail::replay_point replay{};
  std::uint32_t ranks = 0;           ///< number of ranks that the point is valid for; 0: any
  std::uint32_t rank = 0;            ///< the rank that it is valid for; equal to `ranks`: all of them
  // In versions 4 and 5, which have no digest:
  std::uint32_t times = 0;           ///< hash of the times of the files' last changes; 0: not known
  detail::digest_share share{};              ///< in version 1 only

  /// Returns true if `digest` is still the digest of one of several ranks, so not yet summed.
  bool is_share() const noexcept { return share.ranks > 1 && digest == share.digest; }

  friend bool operator==(const position&, const position&) = default;
};

namespace detail {

struct position_field {
  const char* name;
  bool hexadecimal = false;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

/// Calls visit(field, member) for each field, in the order of the text.
template <class Position, class Visit>
void for_each_field(Position& p, const Visit& visit) {
  constexpr std::uint64_t narrow = std::numeric_limits<std::uint32_t>::max();
  visit(position_field{.name = "version", .most = narrow}, p.version);
  visit(position_field{.name = "seed"}, p.seed);
  visit(position_field{.name = "epoch"}, p.epoch);
  visit(position_field{.name = "position"}, p.next_position);
  visit(position_field{.name = "lanes", .most = narrow}, p.lanes);
  visit(position_field{.name = "window"}, p.window);
  visit(position_field{.name = "global_batch"}, p.global_batch);
  visit(position_field{.name = "epoch_batches"}, p.epoch_batches);
  visit(position_field{.name = "drop_last", .most = 1}, p.drop_last);
  visit(position_field{.name = "data", .hexadecimal = true}, p.data_set);
  const bool replay = p.version == Position::replay_version || p.version == Position::packing_version;
  const bool older = p.version == Position::older_replay_version || p.version == Position::older_packing_version;
  if (replay) visit(position_field{.name = "times", .hexadecimal = true, .most = narrow}, p.times);
  else visit(position_field{.name = "digest", .hexadecimal = true}, p.digest);
  if (!replay && !older) return;
  visit(position_field{.name = "step"}, p.step);
  visit(position_field{.name = "pass"}, p.replay.pass);
  visit(position_field{.name = "place"}, p.replay.ordinal);
  visit(position_field{.name = "rows"}, p.replay.rows);
  visit(position_field{.name = "part"}, p.replay.shard);
  visit(position_field{.name = "first"}, p.replay.first);
  visit(position_field{.name = "ranks", .most = narrow}, p.ranks);
  visit(position_field{.name = "rank", .most = narrow}, p.rank);
  if (p.version == Position::packing_version || p.version == Position::older_packing_version)
    visit(position_field{.name = "held"}, p.replay.held);
}

inline constexpr position_field shares_field{.name = "shares", .most = std::numeric_limits<std::uint32_t>::max()};
inline constexpr std::string_view position_mark = "millrace";

inline std::string field_text(const position_field& field, std::uint64_t value) {
  constexpr std::uint64_t narrow = std::numeric_limits<std::uint32_t>::max();
  return field.hexadecimal ? hex(value, field.most > narrow ? 16 : 8) : std::to_string(value);
}

inline std::uint32_t checksum_of(std::string_view text) noexcept {
  return crc32c(bytes_of(text));
}

/// Parses the text of a resume point, field by field from the front.
class position_reader {
 public:
  explicit position_reader(std::string_view text) : text_(text), left_(text) {
    if (!text.starts_with(position_mark))
      fail("it does not begin with '" + std::string(position_mark) + "'");
    left_.remove_prefix(position_mark.size());
  }

  bool has(const position_field& field) const { return left_.starts_with(" " + std::string(field.name) + "="); }

  std::uint64_t take(const position_field& field) {
    const std::string before = " " + std::string(field.name) + "=";
    if (!left_.starts_with(before)) {
      if (before.starts_with(left_)) fail("it is cut off before " + std::string(field.name));
      fail("'" + before.substr(1) + "' is missing in front of '" + printable(left_.substr(0, 40)) + "'");
    }
    left_.remove_prefix(before.size());
    const std::string_view digits = left_.substr(0, left_.find(' '));
    left_.remove_prefix(digits.size());
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value, field.hexadecimal ? 16 : 10);
    // Accepts only the spelling that to_text() writes, so that no other text means the same.
    if (read.ec != std::errc{} || read.ptr != end || value > field.most || field_text(field, value) != digits)
      fail(std::string(field.name) + "=" + printable(digits.substr(0, 40)) + " is not a valid number for that field");
    return value;
  }

  void take_checksum() {
    const std::string_view covered = text_.substr(0, text_.size() - left_.size());
    const std::string before = " crc32c=", expected = before + hex(checksum_of(covered), 8);
    if (left_ == expected) return;
    if (left_.size() < expected.size() && (left_.starts_with(before) || before.starts_with(left_)))
      fail("it is cut off in its checksum");
    if (!left_.starts_with(before)) fail("'crc32c=' is missing in front of '" + printable(left_.substr(0, 40)) + "'");
    if (left_.size() > expected.size()) fail("more follows its checksum");
    fail("its checksum does not fit: it was changed or damaged");
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw data_error("this is not a resume point of a run: " + why + "; it has " + std::to_string(text_.size()) +
                         " bytes",
                     "Give the text that batch::position() gave, whole and unchanged");
  }

 private:
  std::string_view text_, left_;
};

}  // namespace detail

/// Returns the resume point as one line of text; see the head of this file for the format.
inline std::string to_text(const position& p) {
  std::string text(detail::position_mark);
  const auto add = [&](const detail::position_field& field, std::uint64_t value) {
    text += ' ';
    text += field.name;
    text += '=';
    text += detail::field_text(field, value);
  };
  detail::for_each_field(p, add);
  if (p.is_share()) add(detail::shares_field, p.share.ranks);
  return text + " crc32c=" + detail::hex(detail::checksum_of(text), 8);
}

/// Returns the resume point in `text`. Throws data_error if the text is damaged or of an unknown version.
inline position parse_position(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  detail::position_reader reader(text);
  position p;
  detail::for_each_field(p, [&]<class T>(const detail::position_field& field, T& member) {
    member = static_cast<T>(reader.take(field));
    if (p.version < position::known_version || p.version > position::packing_version)
      throw data_error("this resume point is of version " + std::to_string(p.version) + ", and only versions " +
                           std::to_string(position::known_version) + " to " +
                           std::to_string(position::packing_version) + " are known here",
                       "Resume with the release of Millrace that wrote it");
  });
  if (p.version == position::known_version && reader.has(detail::shares_field)) {
    p.share = detail::digest_share{.digest = p.digest,
                                   .ranks = static_cast<std::uint32_t>(reader.take(detail::shares_field))};
  }
  reader.take_checksum();
  return p;
}

namespace detail {

/// Checks that a run with the settings of `current` may resume at `from`. Throws setup_error that lists the
/// differences. Does not compare how far the two runs are (epoch, position, digest), nor the times of their files.
inline void check_same(const position& from, const position& current) {
  if ((from.version == position::older_replay_version || from.version == position::older_packing_version) &&
      from.lanes > 1 && current.version != position::known_version)
    throw setup_error("this resume point is of version " + std::to_string(from.version) + ", whose order of lanes is "
                          "not made any more: got " + std::to_string(from.lanes) + " lanes that went from pass to pass "
                          "each for itself, expected version " + std::to_string(current.version) +
                          ", where they wait for each other",
                      "Resume with the release of Millrace that wrote it, or start without it");
  std::string differences;
  const auto compare = [&](const char* what, const std::string& then, const std::string& now) {
    if (then == now) return;
    differences += differences.empty() ? "" : "; ";
    differences += std::string(what) + " was " + then + " and is " + now;
  };
  const auto epoch_of = [](const position& p) -> std::string {
    if (p.epoch_batches == std::numeric_limits<std::uint64_t>::max()) return "endless";
    if (p.epoch_batches > 0) return std::to_string(p.epoch_batches) + " batches";
    return p.drop_last ? "one pass without a short last batch" : "one pass with its short last batch";
  };
  const auto window_of = [](const position& p) { return p.window == 0 ? "none" : std::to_string(p.window); };
  const auto order_of = [](const position& p) -> std::string {
    switch (p.version) {
      case position::older_replay_version:
      case position::replay_version: return std::to_string(position::replay_version) + " (without an index)";
      case position::older_packing_version:
      case position::packing_version: return std::to_string(position::packing_version) + " (without an index, packing)";
      default: return std::to_string(p.version);
    }
  };
  const auto ranks_of = [](const position& p) {
    if (p.ranks == 0) return std::string("any");
    return (p.rank == p.ranks ? "any" : "rank " + std::to_string(p.rank)) + " of " + std::to_string(p.ranks);
  };
  compare("the order's version", order_of(from), order_of(current));
  compare("the data set", detail::hex(from.data_set, 16),
          detail::hex(current.data_set, 16));
  compare("the seed", std::to_string(from.seed), std::to_string(current.seed));
  compare("the shuffle window", window_of(from), window_of(current));
  compare("the number of lanes", std::to_string(from.lanes), std::to_string(current.lanes));
  compare("the global batch", std::to_string(from.global_batch), std::to_string(current.global_batch));
  compare("an epoch", epoch_of(from), epoch_of(current));
  compare("the rank, which counts without an index,", ranks_of(from), ranks_of(current));
  if (!differences.empty())
    throw setup_error("the resume point belongs to another run: " + differences,
                      "Make them equal, or start without it; workers may change, and with an index the ranks of one "
                      "global batch");
}

}  // namespace detail

}}  // namespace millrace
