// Definitions for token_windows.hpp.
#pragma once

#include <millrace/sources/token_windows.hpp>

#include <algorithm>
#include <utility>
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

MILLRACE_INLINE token_windows::token_windows(const token_layout& layout, megatron_index index)
    : layout_(layout),
      documents_(std::make_shared<const megatron_index>(std::move(index))),
      count_(documents_->first_tokens.size() - 1),
      end_(layout.tokens) {}

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
                   {.stage = "tokens",
                    .shard = std::string(window.file),
                    .offset_bytes = window.of.place(window.number).offset_bytes + good * type.bytes});
}

MILLRACE_INLINE token_windows read_token_windows(const opened_tokens& opened, const token_layout_options& options,
                                                 const window_rule& rule) {
  const std::uint64_t bytes = size_of_open(opened.at, opened.file);
  std::vector<std::byte> front;
  token_layout_options resolved = options;
  std::optional<megatron_index> index;
  if (rule.documents) {
    index = read_megatron_index(opened.at, opened.name, bytes);
    if (!index)
      throw setup_error("token_files() finds no documents: Megatron's .idx file next to the file does not exist",
                        "Pass a .bin file with its .idx file, or omit token_files_options::documents",
                        {.stage = "tokens", .shard = opened.name});
    return {{.tokens = bytes / index->type.bytes, .type = index->type}, std::move(*index)};
  }
  if (!options.header_bytes) {
    front.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, token_file_head::front_bytes)));
    front.resize(read_fully(opened.file, 0, front));
    const file_kind kind = kind_of_file({.front = front, .file_bytes = bytes});
    if (options.token_bytes == 0 && kind == file_kind::unknown)
      if (const auto type = megatron_token_type(opened.at, opened.name)) resolved.token_bytes = type->bytes;
  }
  return {layout_of_tokens({.name = opened.name, .front = front, .file_bytes = bytes}, resolved), rule};
}

}}}   // namespace millrace::detail
