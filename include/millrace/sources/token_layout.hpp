// Determines the position and the type of the tokens in a file: a flat array, a .npy file, or a file of llm.c.
//
//   const auto layout = mr::detail::layout_of_tokens({.name = name, .front = front, .file_bytes = size}, options);
//   layout.tokens;   layout.first_byte;   layout.type.bytes;
//
// A .npy file contains signed or unsigned integers of 1, 2, 4 or 8 bytes. The array has one dimension, or two
// dimensions; the rows of a two-dimensional array are concatenated. A file of llm.c has a header of 1,024 bytes and the
// magic number 20240520 (u16) or 20240801 (u32).
// Any other file is flat: an array of little-endian numbers. If `header_bytes` is set, the array begins after that
// number of bytes.
// Errors: data_error for the following files. If `header_bytes` is set, only the size of the file is checked.
// - a file of another kind, such as a compressed file, an archive, a table or a text
// - a .npy file whose type or shape is not one of those above
// - a file whose size does not match the layout
// - a file whose tokens are probably wider than its name indicates, because every second number is zero or very small
// Threads: pure functions; any thread.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/file_kind.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The user's options for the tokens of a file.
struct token_layout_options {
  std::size_t token_bytes = 0;   ///< 1, 2, 4 or 8; 0 if the header or the name of the file determines the size
  std::optional<std::size_t> header_bytes{};   ///< if set, the file is flat after this number of bytes
};

/// The properties of a file that determine its layout.
struct token_file_head {
  static constexpr std::size_t front_bytes = 1024;   ///< enough for every header except a long .npy header

  std::string_view name;
  std::span<const std::byte> front;   ///< the first front_bytes, or the complete file
  std::uint64_t file_bytes;
};

/// The stored form of a token: an unsigned or signed little-endian integer.
struct token_type {
  std::size_t bytes = 2;   ///< 1, 2, 4 or 8
  bool is_signed = false;
};

/// The position and the type of the tokens of a file.
struct token_layout {
  std::uint64_t first_byte = 0, tokens = 0;
  token_type type{};
};

/// Returns the layout of a file.
token_layout layout_of_tokens(const token_file_head& file, const token_layout_options& options);

/// Returns the type for the extension .u8 to .u64 or .i8 to .i64, and u16 for all other names.
token_type token_type_by_name(std::string_view name) noexcept;

/// Decodes ids.size() stored tokens into `ids`. Returns the index of the first token that is negative or greater than
/// `max_id`. If all tokens are valid, returns ids.size().
std::size_t decode_tokens(const std::byte* stored, token_type type, std::uint32_t max_id,
                          std::span<std::uint32_t> ids) noexcept;
/// Returns a stored token as text, for messages.
std::string token_file_text(const std::byte* stored, token_type type);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/token_layout.inl>
#endif
