// Definitions for position.hpp.
#pragma once

#include <millrace/item/position.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/text.hpp>

#include <charconv>
#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_RARE std::uint32_t checksum_of(std::string_view text) noexcept { return crc32c(bytes_of(text)); }

MILLRACE_RARE position_reader::position_reader(std::string_view text) : text_(text), left_(text) {
  if (!text.starts_with(position_mark)) fail("it does not begin with '" + std::string(position_mark) + "'");
  left_.remove_prefix(position_mark.size());
}

MILLRACE_RARE std::uint64_t position_reader::read(const position_field& field) {
  const std::string before = " " + std::string(field.name) + "=";
  if (!left_.starts_with(before)) {
    if (before.starts_with(left_)) fail("it is truncated before " + std::string(field.name));
    fail("'" + before.substr(1) + "' is missing before '" + printable(left_.substr(0, 40)) + "'");
  }
  left_.remove_prefix(before.size());
  const std::string_view digits = left_.substr(0, left_.find(' '));
  left_.remove_prefix(digits.size());
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, field.hexadecimal ? 16 : 10);
  // Accepts only the text that to_text() writes for this number, so that a number has only one text.
  if (parsed.ec != std::errc{} || parsed.ptr != end || value > field.max || value < field.min ||
      field_text(field, value) != digits)
    fail(std::string(field.name) + "=" + printable(digits.substr(0, 40)) + " is not a valid number for this field");
  return value;
}

MILLRACE_RARE void position_reader::read_checksum() {
  const std::string_view covered = text_.substr(0, text_.size() - left_.size());
  const std::string before = " crc32c=", expected = before + hex(checksum_of(covered), 8);
  if (left_ == expected) return;
  if (left_.size() < expected.size() && (left_.starts_with(before) || before.starts_with(left_)))
    fail("it is truncated in its checksum");
  if (!left_.starts_with(before)) fail("'crc32c=' is missing before '" + printable(left_.substr(0, 40)) + "'");
  if (left_.size() > expected.size()) fail("data follows its checksum");
  fail("its checksum is wrong: it was changed or damaged");
}

MILLRACE_RARE void position_reader::fail(const std::string& problem) const {
  throw data_error("the resume text is not valid: " + problem + "; got " + std::to_string(text_.size()) + " bytes",
                   "Pass the text that batch::resume_text() returned, complete and unchanged");
}

}   // namespace detail

MILLRACE_RARE std::string to_text(const position& p) {
  std::string text(detail::position_mark);
  const auto add = [&](const detail::position_field& field, std::uint64_t value) MILLRACE_RARE_CODE {
    text += ' ';
    text += field.name;
    text += '=';
    text += detail::field_text(field, value);
  };
  detail::for_each_field(p, add);
  if (p.choice != 0) add(detail::choice_field, p.choice);
  if (p.stride != 0) add(detail::stride_field, p.stride);
  if (p.packing.row != 0) {
    add(detail::packed_row_field, p.packing.row);
    add(detail::open_rows_field, p.packing.open_rows);
  }
  if (p.is_share()) add(detail::shares_field, p.share.ranks);
  if (p.counts.shards != 0) add(detail::shards_field, p.counts.shards);
  if (p.counts.samples != 0) add(detail::samples_field, p.counts.samples);
  return text + " crc32c=" + detail::hex(detail::checksum_of(text), 8);
}

MILLRACE_RARE position parse_position(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  detail::position_reader reader(text);
  position p;
  detail::for_each_field(p, [&]<class T>(const detail::position_field& field, T& member) {
    member = static_cast<T>(reader.read(field));
    if (p.version < position::older_index_version || p.version > position::packing_version)
      throw data_error("the resume text has version " + std::to_string(p.version) + ", and only versions " +
                           std::to_string(position::older_index_version) + " to " +
                           std::to_string(position::packing_version) + " are supported",
                       "Resume with the release of Millrace that wrote it");
  });
  if (p.has_index() && reader.has(detail::choice_field)) {
    p.choice = reader.read(detail::choice_field);
  }
  if (reader.has(detail::stride_field)) p.stride = static_cast<std::uint32_t>(reader.read(detail::stride_field));
  if (!p.has_index() && reader.has(detail::packed_row_field)) {
    p.packing.row = reader.read(detail::packed_row_field);
    p.packing.open_rows = reader.read(detail::open_rows_field);
  }
  if (p.has_index() && reader.has(detail::shares_field)) {
    p.share = digest_share{.digest = p.digest, .ranks = static_cast<std::uint32_t>(reader.read(detail::shares_field))};
  }
  if (reader.has(detail::shards_field)) p.counts.shards = reader.read(detail::shards_field);
  if (reader.has(detail::samples_field)) p.counts.samples = reader.read(detail::samples_field);
  reader.read_checksum();
  return p;
}

MILLRACE_RARE std::uint32_t position::place() const {
  position same = *this;
  same.digest = 0;
  same.share = {};
  same.replay = {};
  same.rank = same.ranks;
  return detail::checksum_of(to_text(same));
}

namespace detail {

/// Returns whether shards or samples were added to a data set, according to the counts.
MILLRACE_RARE bool has_grown(const data_counts& then, const data_counts& now) noexcept {
  return then.shards > 0 && now.shards >= then.shards && now.samples >= then.samples &&
         (now.shards > then.shards || now.samples > then.samples);
}

MILLRACE_RARE std::string counts_text(const data_counts& counts) {
  const auto count = [](std::uint64_t n, const char* one, const char* many) {
    return std::to_string(n) + (n == 1 ? one : many);
  };
  std::string text;
  if (counts.shards > 0) text = count(counts.shards, " shard", " shards");
  if (counts.samples > 0) text += (text.empty() ? "" : " and ") + count(counts.samples, " sample", " samples");
  return text;
}

MILLRACE_RARE void check_same(const position& from, const position& current) {
  if (from.is_oldest() && from.lanes > 1 && !current.has_index())
    throw setup_error("this release cannot continue an older resume point that has several lanes: got version " +
                          std::to_string(from.version) + " with " + std::to_string(from.lanes) +
                          " lanes, expected version " + std::to_string(current.version),
                      "Resume with the release of Millrace that wrote the resume point, or start a new run");
  std::string differences;
  const auto compare = [&](const char* setting, const std::string& then, const std::string& now) MILLRACE_RARE_CODE {
    if (then == now) return;
    differences += differences.empty() ? "" : "; ";
    differences += std::string(setting) + " was " + then + " and is " + now;
  };
  const auto epoch_of = [](const position& p) -> std::string {
    if (p.epoch_batches == std::numeric_limits<std::uint64_t>::max()) return "endless";
    if (p.epoch_batches > 0) return std::to_string(p.epoch_batches) + " batches";
    return p.drop_last ? "one pass without a short last batch" : "one pass with its short last batch";
  };
  const auto window_of = [](const position& p) { return p.window == 0 ? "none" : std::to_string(p.window); };
  const auto order_of = [](const position& p) -> std::string {
    if (p.has_index()) return std::to_string(p.version);
    const std::uint32_t version = !p.is_oldest() ? p.version
                                  : p.packs()    ? position::older_packing_version
                                                 : position::older_replay_version;
    return std::to_string(version) + (p.packs() ? " (without an index, packing)" : " (without an index)");
  };
  const auto ranks_of = [](const position& p) {
    if (p.ranks == 0) return std::string("any number of ranks");
    if (p.rank == p.ranks) return "any of " + std::to_string(p.ranks) + (p.ranks == 1 ? " rank" : " ranks");
    return "rank " + std::to_string(p.rank) + " of " + std::to_string(p.ranks);
  };
  compare("the order's version", order_of(from), order_of(current));
  const auto data_of = [](const position& p) {
    const std::string counts = counts_text(p.counts);
    return hex(p.data_set, 16) + (counts.empty() ? "" : " (" + counts + ")");
  };
  if (from.data_set != current.data_set) compare("the data set", data_of(from), data_of(current));
  const auto choice_of = [](const position& p) { return p.choice == 0 ? "all, each once" : hex(p.choice, 16); };
  compare("the choice of samples (.having, .only, .without, .where, .repeats)", choice_of(from), choice_of(current));
  compare("the seed", std::to_string(from.seed), std::to_string(current.seed));
  compare("the shuffle window", window_of(from), window_of(current));
  compare("the number of lanes", std::to_string(from.lanes), std::to_string(current.lanes));
  compare("the global batch", std::to_string(from.global_batch), std::to_string(current.global_batch));
  compare("an epoch", epoch_of(from), epoch_of(current));
  compare("the rank (relevant without an index)", ranks_of(from), ranks_of(current));
  const auto stride_of = [](const position& p) { return p.stride == 0 ? "none" : std::to_string(p.stride); };
  compare("the stride of mixed rows", stride_of(from), stride_of(current));
  if (from.packing.row != 0) {   // 0 in a text of an earlier release
    const auto limit_of = [](std::uint64_t n) { return n == 0 ? "none" : std::to_string(n); };
    compare("the row of pack() (length or max_cost)", limit_of(from.packing.row), limit_of(current.packing.row));
    compare("open_rows of pack_best_fit()", limit_of(from.packing.open_rows), limit_of(current.packing.open_rows));
  }
  if (!differences.empty() && from.has_index() != current.has_index())
    throw setup_error("the resume point belongs to another run: " + differences,
                      from.has_index() ? "The earlier run used an index: remove .index = mr::index::off from shards()"
                                       : "The earlier run used no index: set .index = mr::index::off in shards()");
  if (!differences.empty())
    throw setup_error("the resume point belongs to another run: " + differences,
                      from.has_index() && has_grown(from.counts, current.counts)
                          ? "Set session_options::grown to continue with the next epoch over the larger data set, or "
                            "pass the previous shards"
                          : "Use equal values, or start without the resume point. The number of workers may change. "
                            "With an index, the number of ranks may change too if the global batch is the same");
}

}   // namespace detail

}}   // namespace millrace
