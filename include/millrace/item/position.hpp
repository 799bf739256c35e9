// The resume point: where a run stands, as one line of text that goes into a checkpoint.
//
//   std::string text = to_text(position);              // "millrace version=1 seed=7 epoch=3 position=640000 ..."
//   mr::position from = mr::parse_position(text);      // data_error that names what is wrong with it
//   mr::check_same(from, current);                     // setup_error that names what differs: data set, seed, ...
//
// Below 300 bytes, printable, without an end of line (one at the end is let pass when reading). Numbers are decimal,
// data, digest, times and checksum hexadecimal. `crc32c` is the CRC-32C of all that stands in front of it, so a damaged
// text is refused, however it was damaged. The number of workers and what was read ahead are not in it: they may
// change. Everything that the order depends on is, and may not.
// Version 1 is the order of an index, whatever the ranks. Version 4, that of a source without one, says besides where
// reading has to begin again, for which ranks, and a hash of when the files were changed; version 5, that of such a
// source whose samples are packed into rows, how many tokens its first row has before that. Versions 2 and 3 are what
// was 4 and 5 when lanes did not wait for each other between passes: of one lane the order is the same, and they go on;
// of several they are refused.
// With an index all ranks have the same text but for its digest: each has that of what it was given itself. They add up
// (wrapping) to the digest of the run: sum them before saving:
//   MPI_Allreduce(MPI_IN_PLACE, &position.digest, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
// Where nobody has changed it since b.position(), the text says `shares`, the number of ranks, and a run that goes on
// from it says once that its digests will mean nothing. Nothing refuses it.
// Errors: as above; text is not trusted, and whatever it holds ends in a position or in that error. Threads: pure.
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

/// What a run without an index reads again, to go on behind a batch.
struct replay_point {
  std::uint64_t pass = 0;    ///< through the source
  std::uint64_t place = 0;   ///< in the order of that pass: of the first sample that is made into rows
  std::uint64_t rows = 0;    ///< from that sample on, which were delivered or dropped already
  std::uint64_t shard = 0;    ///< the first that is opened, in the pass's order of parts
  std::uint64_t first = 0;   ///< samples of the pass in the parts before it
  std::uint64_t held = 0;    ///< tokens that packing has in its row when the sample at `place` comes

  friend bool operator==(const replay_point&, const replay_point&) = default;
};

/// A digest as one of several ranks had it: another one was summed. Says nothing about where a run stands.
struct digest_share {
  std::uint64_t digest = 0;
  std::uint32_t ranks = 0;   ///< 0: no others had anything

  friend constexpr bool operator==(const digest_share&, const digest_share&) { return true; }
};

struct position {
  /// Of the text and of the order that it stands for: a build that orders otherwise has another.
  static constexpr std::uint32_t known_version = 1;
  static constexpr std::uint32_t replay_version = 4;
  static constexpr std::uint32_t packing_version = 5;
  /// What these two were when lanes did not wait for each other between passes.
  static constexpr std::uint32_t older_replay_version = 2;
  static constexpr std::uint32_t older_packing_version = 3;

  std::uint32_t version = known_version;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t next_position = 0;   ///< in the epoch: the first that was not delivered
  std::uint32_t lanes = 0;
  std::uint64_t window = 0;          ///< in samples; 0: not shuffled
  std::uint64_t global_batch = 0;    ///< rows of all ranks together
  std::uint64_t epoch_batches = 0;   ///< 0: an epoch is an exact pass; 2^64 - 1: endless
  bool drop_last = true;
  std::uint64_t data_set = 0;        ///< fingerprint: names, sizes, counts
  std::uint64_t digest = 0;          ///< of what was delivered so far: this rank's share, or the ranks' sum
  // Of all versions but 1:
  std::uint64_t step = 0;            ///< batches of the run so far
  replay_point replay{};
  std::uint32_t ranks = 0;           ///< 0: any number, else this point is of that many,
  std::uint32_t rank = 0;            ///< and of this one of them; of each of them if it is equal to `ranks`
  // Of versions 4 and 5, which have no digest:
  std::uint32_t times = 0;           ///< made of when the source's files were last changed; 0: not known
  digest_share share{};              ///< of version 1

  /// Whether `digest` is still that of one of several ranks.
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
  visit(position_field{.name = "place"}, p.replay.place);
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

inline std::string hexadecimal_digits(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

inline std::string field_text(const position_field& field, std::uint64_t value) {
  constexpr std::uint64_t narrow = std::numeric_limits<std::uint32_t>::max();
  return field.hexadecimal ? hexadecimal_digits(value, field.most > narrow ? 16 : 8) : std::to_string(value);
}

inline std::uint32_t checksum_of(std::string_view text) noexcept {
  return crc32c(bytes_of(text));
}

/// Takes a resume point apart from its beginning.
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
    // Exactly as it is written: no other text means the same.
    if (read.ec != std::errc{} || read.ptr != end || value > field.most || field_text(field, value) != digits)
      fail(std::string(field.name) + "=" + printable(digits.substr(0, 40)) + " is no number of that field");
    return value;
  }

  void take_checksum() {
    const std::string_view covered = text_.substr(0, text_.size() - left_.size());
    const std::string before = " crc32c=", expected = before + hexadecimal_digits(checksum_of(covered), 8);
    if (left_ == expected) return;
    if (left_.size() < expected.size() && (left_.starts_with(before) || before.starts_with(left_)))
      fail("it is cut off in its checksum");
    if (!left_.starts_with(before)) fail("'crc32c=' is missing in front of '" + printable(left_.substr(0, 40)) + "'");
    if (left_.size() > expected.size()) fail("more follows its checksum");
    fail("its checksum does not fit: it was changed or damaged");
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw data_error("this is no resume point of a run: " + why + "; it has " + std::to_string(text_.size()) + " bytes",
                     "Give the text that batch::position() gave, whole and unchanged");
  }

 private:
  std::string_view text_, left_;
};

}  // namespace detail

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
  return text + " crc32c=" + detail::hexadecimal_digits(detail::checksum_of(text), 8);
}

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
    p.share = digest_share{.digest = p.digest, .ranks = static_cast<std::uint32_t>(reader.take(detail::shares_field))};
  }
  reader.take_checksum();
  return p;
}

/// Whether a run with the settings of `current` may go on at `from`: what may not differ does not. Where each of them
/// stands (epoch, position, digest), and when its files were changed, is not compared.
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
  compare("the data set", detail::hexadecimal_digits(from.data_set, 16),
          detail::hexadecimal_digits(current.data_set, 16));
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

}}  // namespace millrace
