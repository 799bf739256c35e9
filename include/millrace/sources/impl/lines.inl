// Definitions for lines.hpp.
#pragma once

#include <millrace/sources/lines.hpp>

#include <millrace/io/file/byte_source.hpp>
#include <millrace/item/owner.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool is_text_name(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 5> compressions{".gz", ".zst", ".bz2", ".xz", ".lz4"};
  constexpr std::array<std::string_view, 6> endings{".txt", ".jsonl", ".ndjson", ".json", ".csv", ".tsv"};
  if (name.empty() || name.front() == '.') return false;
  for (const std::string_view end : compressions)
    if (name.ends_with(end)) {
      name.remove_suffix(end.size());
      break;
    }
  return std::any_of(endings.begin(), endings.end(), [name](std::string_view end) { return name.ends_with(end); });
}

MILLRACE_INLINE lines_source::lines_source(std::vector<std::string> names, const lines_options& o)
    : files_(std::move(names), o.storage),
      options_{.limits = o.limits, .skip_empty = o.skip_empty, .check_utf8 = o.check_utf8},
      pool_(make_shared_object<block_pool>()),
      reads_(make_shared_object<read_meter>()) {}

MILLRACE_INLINE line_reader lines_source::open(std::size_t shard, std::uint64_t) const {
  return {files_.open(shard, *reads_), *pool_, options_};
}

MILLRACE_INLINE lines_source lines_source::watched_in(std::shared_ptr<read_meter> meter) const {
  lines_source same = *this;
  same.reads_ = std::move(meter);
  return same;
}

}   // namespace detail

}}   // namespace millrace
