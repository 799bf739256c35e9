// Defines what token_files.hpp declares.
#pragma once

#include <millrace/sources/token_files.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE token_reader::token_reader(const std::string& name, const token_files_options& options)
    : options_(options), token_bytes_(token_bytes_of(name, options)) {
  static_assert(std::endian::native == std::endian::little);
  file_ = open_file(options.storage, name);
  const std::uint64_t bytes = size_of_open(options.storage, *file_);
  if (bytes % token_bytes_ != 0)
    throw data_error("the file has " + std::to_string(bytes) + " bytes (expected: a multiple of the " +
                         std::to_string(token_bytes_) + " that a token has)",
                     "Write it again, or set token_files_options::token_bytes", {.stage = "tokens", .shard = name});
  tokens_ = static_cast<std::size_t>(bytes / token_bytes_);
}

MILLRACE_INLINE std::optional<packed> token_reader::next() {
  const std::size_t length = options_.length, left = tokens_ - std::min(at_, tokens_);
  const std::size_t count = left >= length ? length : options_.keep_short ? left : 0;
  if (count == 0 || end_ == tokens_) return std::nullopt;
  packed window;
  window.ids.resize(count);
  const std::byte* const from = bytes_of(at_, count);
  if (token_bytes_ == 4) {
    std::memcpy(window.ids.data(), from, count * 4);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t token;
      std::memcpy(&token, from + 2 * i, sizeof token);
      window.ids[i] = token;
    }
  }
  end_ = at_ + count;
  at_ += options_.stride > 0 ? options_.stride : length;
  return window;
}

MILLRACE_INLINE const std::byte* token_reader::bytes_of(std::size_t first, std::size_t count) {
  if (first < held_first_ || first + count > held_first_ + held_.size() / token_bytes_) {
    // Where windows lie far apart, what is between them is not read.
    const bool apart = options_.stride > 2 * options_.length;
    const std::size_t wanted = apart ? count : std::max(count, chunk_bytes / token_bytes_);
    held_.resize(std::min(wanted, tokens_ - first) * token_bytes_);
    held_first_ = first;
    // A file that ends too early is an error of the source.
    static_cast<void>(read_fully(*file_, std::uint64_t{first} * token_bytes_, held_));
  }
  return held_.data() + (first - held_first_) * token_bytes_;
}

MILLRACE_INLINE void token_reader::report(event_counts& counts) const noexcept {
  if (end_ < tokens_) counts.count("tokens behind the last whole window of a file", tokens_ - end_);
}

MILLRACE_INLINE std::size_t token_reader::token_bytes_of(const std::string& name, const token_files_options& o) {
  return o.token_bytes > 0 ? o.token_bytes : name.ends_with(".u32") ? 4 : 2;
}

MILLRACE_INLINE token_files_source::token_files_source(std::vector<std::string> names,
                                                       const token_files_options& options)
    : files_(std::move(names), options.storage), options_(options) {
  if (options.length == 0)
    throw setup_error("token_files() was asked for windows of 0 tokens", "Set token_files_options::length");
  if (options.token_bytes != 0 && options.token_bytes != 2 && options.token_bytes != 4)
    throw setup_error("token_files() was asked for tokens of " + std::to_string(options.token_bytes) + " bytes",
                      "Tokens have 2 or 4 bytes; 0 lets the file's name decide");
}

MILLRACE_INLINE bool names_tokens(std::string_view name) noexcept {
  return !name.starts_with('.') && (name.ends_with(".u16") || name.ends_with(".u32") || name.ends_with(".bin"));
}

}  // namespace detail

}}  // namespace millrace
