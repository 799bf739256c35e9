// Definitions for token_windows.hpp.
#pragma once

#include <millrace/sources/token_windows.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE token_windows::token_windows(const token_layout& layout, const window_rule& rule) noexcept
    : layout_(layout), rule_(rule) {
  const std::uint64_t tokens = layout.tokens;
  if (tokens >= rule.length) {
    count_ = (tokens - rule.length) / rule.stride + 1;
    end_ = (count_ - 1) * rule.stride + rule.length;
  }
  const bool has_short = rule.keep_short && end_ < tokens && count_ * rule.stride < tokens;
  if (!has_short) return;
  ++count_;
  end_ = tokens;
}

MILLRACE_INLINE packed window_of(std::span<const std::byte> stored, const stored_window& window) {
  const token_type type = window.of.layout().type;
  packed row;
  row.ids.resize(stored.size() / type.bytes);
  const std::size_t good = decode_tokens(stored.data(), type, window.max_id, row.ids);
  if (good == row.ids.size()) return row;
  const std::int64_t limit = type.is_signed && type.bytes < 8 ? std::int64_t{1} << (8 * type.bytes - 1) : 0;
  std::uint64_t most = window.max_id;
  if (limit > 0) most = std::min(most, static_cast<std::uint64_t>(limit - 1));
  throw data_error("a token is not in the vocabulary: got id " + token_text(stored.data() + good * type.bytes, type) +
                       ", expected 0 to " + std::to_string(most),
                   "Check token_files_options::vocabulary and token_bytes, and which tokenizer wrote the file",
                   {.stage = "tokens", .shard = std::string(window.file),
                    .offset_bytes = window.of.place(window.number).offset_bytes + good * type.bytes});
}

namespace token_headers {

/// Returns the bytes per token in the .idx file of Megatron next to a .bin file; 0 if it does not exist.
MILLRACE_INLINE std::size_t token_bytes_of_index(const storage& at, std::string_view name) {
  constexpr std::string_view end = ".bin";
  constexpr std::size_t type_at = 17, head_bytes = 18;   // after the mark and a version
  constexpr std::size_t bytes[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};   // by the number of the type
  if (!name.ends_with(end)) return 0;
  const std::string index = std::string(name.substr(0, name.size() - end.size())) + ".idx";
  if (!find_stamp(at, index)) return 0;
  std::byte head[head_bytes]{};
  const auto file = open_file(at, index);
  const std::size_t there = read_fully(*file, 0, head);
  const auto type = std::to_integer<unsigned>(head[type_at]);
  return kind_of_file({.front = head, .file_bytes = there}) == file_kind::megatron_index && type < std::size(bytes)
             ? bytes[type]
             : 0;
}

}  // namespace token_headers

MILLRACE_INLINE token_layout read_token_layout(const opened_tokens& opened, const token_layout_options& options) {
  const std::uint64_t bytes = size_of_open(opened.at, opened.file);
  std::vector<std::byte> front;
  token_layout_options resolved = options;
  if (!options.header_bytes) {
    front.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, token_file_head::front_bytes)));
    front.resize(read_fully(opened.file, 0, front));
    const file_kind kind = kind_of_file({.front = front, .file_bytes = bytes});
    if (options.token_bytes == 0 && kind == file_kind::unknown)
      resolved.token_bytes = token_headers::token_bytes_of_index(opened.at, opened.name);
  }
  return layout_of_tokens({.name = opened.name, .front = front, .file_bytes = bytes}, resolved);
}

}}}  // namespace millrace::detail
