// Defines what token_files.hpp declares.
#pragma once

#include <millrace/sources/token_files.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

namespace token_values {

MILLRACE_INLINE std::uint32_t max_id_of(std::size_t vocabulary) noexcept {
  constexpr std::size_t all = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(vocabulary == 0 ? all : std::min(vocabulary - 1, all));
}

}  // namespace token_values

MILLRACE_INLINE token_reader::token_reader(const std::string& name, const token_files_options& options)
    : options_(options), file_(open_file(options.storage, name)), max_id_(token_values::max_id_of(options.vocabulary)) {
  static_assert(std::endian::native == std::endian::little);
  const std::uint64_t bytes = size_of_open(options.storage, *file_);
  held_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, token_file_head::front_bytes)));
  if (!options.header_bytes) static_cast<void>(read_fully(*file_, 0, held_));
  layout_ = layout_of_tokens({.name = name, .front = held_, .file_bytes = bytes},
                             {.token_bytes = options.token_bytes, .header_bytes = options.header_bytes});
  held_.clear();
  tokens_ = static_cast<std::size_t>(layout_.tokens);
}

MILLRACE_INLINE std::optional<packed> token_reader::next() {
  const std::size_t length = options_.length, left = tokens_ - std::min(at_, tokens_);
  const std::size_t count = left >= length ? length : options_.keep_short ? left : 0;
  if (count == 0 || end_ == tokens_) return std::nullopt;
  packed window;
  window.ids.resize(count);
  const std::byte* const from = bytes_of(at_, count);
  const std::size_t good = decode_tokens(from, layout_.type, max_id_, window.ids);
  if (good < count) {
    const std::size_t bytes = layout_.type.bytes;
    throw data_error("a token is not in the vocabulary: got id " + token_text(from + good * bytes, layout_.type) +
                         ", expected 0 to " + std::to_string(max_id_),
                     "Check token_files_options::vocabulary and token_bytes, and which tokenizer wrote the file",
                     {.stage = "tokens", .shard = std::string(file_->name()),
                      .offset_bytes = layout_.first_byte + (at_ + good) * bytes});
  }
  end_ = at_ + count;
  at_ += options_.stride > 0 ? options_.stride : length;
  return window;
}

MILLRACE_INLINE const std::byte* token_reader::bytes_of(std::size_t first, std::size_t count) {
  if (first < held_first_ || first + count > held_first_ + held_.size() / layout_.type.bytes) {
    // Where windows lie far apart, what is between them is not read.
    const bool apart = options_.stride > 2 * options_.length;
    const std::size_t wanted = apart ? count : std::max(count, chunk_bytes / layout_.type.bytes);
    held_.resize(std::min(wanted, tokens_ - first) * layout_.type.bytes);
    held_first_ = first;
    // A file that ends too early is an error of the source.
    static_cast<void>(read_fully(*file_, layout_.first_byte + std::uint64_t{first} * layout_.type.bytes, held_));
  }
  return held_.data() + (first - held_first_) * layout_.type.bytes;
}

MILLRACE_INLINE void token_reader::report(event_counts& counts) const noexcept {
  if (end_ < tokens_) counts.count("tokens behind the last whole window of a file", tokens_ - end_);
}

MILLRACE_INLINE token_files_source::token_files_source(std::vector<std::string> names,
                                                       const token_files_options& options)
    : files_(std::move(names), options.storage), options_(options) {
  if (options.length == 0)
    throw setup_error("token_files() was asked for windows of 0 tokens", "Set token_files_options::length");
  if (options.token_bytes > 8 || (options.token_bytes > 0 && !std::has_single_bit(options.token_bytes)))
    throw setup_error("token_files() was asked for tokens of " + std::to_string(options.token_bytes) + " bytes",
                      "Tokens have 1, 2, 4 or 8 bytes; 0 lets the file decide");
}

MILLRACE_INLINE bool names_tokens(std::string_view name) noexcept {
  constexpr std::string_view endings[] = {".u16", ".u32", ".bin", ".npy", ".u8", ".u64", ".i8", ".i16", ".i32", ".i64"};
  return !name.starts_with('.') && std::any_of(std::begin(endings), std::end(endings),
                                               [name](std::string_view end) { return name.ends_with(end); });
}

}  // namespace detail

}}  // namespace millrace
