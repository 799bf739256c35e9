// Definitions for token_layout.hpp.
#pragma once

#include <millrace/sources/token_layout.hpp>

#include <millrace/item/tensor/array.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace token_headers {

[[noreturn]] MILLRACE_INLINE void fail(const token_file_head& file, const std::string& problem, std::string hint) {
  throw data_error("the file of tokens " + problem, std::move(hint),
                   {.stage = "tokens", .shard = std::string(file.name)});
}

MILLRACE_INLINE std::string remedy_of(file_kind kind) {
  using enum file_kind;
  if (is_compressed(kind)) return "Decompress it first, because windows are read at any offset";
  switch (kind) {
    case git_lfs_pointer: return "Fetch the file itself with git lfs pull";
    case html:
    case xml: return "The download failed: check the address and the login, and fetch the file again";
    case json:
    case text: return "Tokenize it with lines() | map(tokenize) | pack(), or once with examples/tokenize_shards";
    case tar: return "Read it with shards(), or unpack it first";
    case megatron_index: return "Pass the .bin file next to it instead";
    default: return "Write its tokens with numpy.save(), or as a flat file with tofile()";
  }
}

/// Throws the error for a file that contains something other than tokens.
[[noreturn]] MILLRACE_INLINE void fail_as_container(const token_file_head& file, file_kind kind) {
  fail(file,
       "does not contain plain tokens: got " + std::string(name_of(kind)) +
           ", expected little-endian numbers or a .npy file",
       remedy_of(kind) + ". Set token_files_options::header_bytes = 0 to read its bytes as tokens anyway");
}

MILLRACE_INLINE std::uint32_t word(const token_file_head& file, std::size_t at) noexcept {
  std::uint32_t value = 0;
  if (4 * (at + 1) <= file.front.size()) std::memcpy(&value, file.front.data() + 4 * at, 4);
  return value;
}

MILLRACE_INLINE void check_token_bytes(const token_file_head& file, const token_layout& l,
                                       const token_layout_options& o) {
  if (o.token_bytes == 0 || o.token_bytes == l.type.bytes) return;
  fail(file,
       "has tokens of another size: got " + std::to_string(l.type.bytes) +
           " bytes according to its header, expected token_bytes = " + std::to_string(o.token_bytes),
       "Omit token_files_options::token_bytes");
}

MILLRACE_INLINE void check_size(const token_file_head& file, const token_layout& l) {
  const std::uint64_t there = file.file_bytes - l.first_byte;
  if (there / l.type.bytes == l.tokens && there % l.type.bytes == 0) return;
  fail(file,
       "does not have the size that its header declares: got " + std::to_string(there) +
           " bytes after the header, expected " + std::to_string(l.tokens) + " tokens of " +
           std::to_string(l.type.bytes) + " bytes",
       "The file is damaged or truncated: write it again");
}

MILLRACE_INLINE token_layout llm_c(const token_file_head& file) {
  constexpr std::uint32_t narrow = 20240520, wide = 20240801;
  const std::uint32_t magic = word(file, 0);
  if (magic != narrow && magic != wide) fail_as_container(file, file_kind::llm_c);
  const token_layout l{.first_byte = 1024, .tokens = word(file, 2), .type = {.bytes = magic == narrow ? 2u : 4u}};
  check_size(file, l);
  return l;
}

MILLRACE_INLINE token_layout npy(const token_file_head& file) {
  const std::string_view all(reinterpret_cast<const char*>(file.front.data()), file.front.size());
  const auto byte_at = [all](std::size_t at) -> std::size_t {
    return at < all.size() ? static_cast<unsigned char>(all[at]) : 0;
  };
  const bool is_short = byte_at(6) == 1;
  const std::size_t header_at = is_short ? 10 : 12;
  std::size_t bytes = byte_at(8) | byte_at(9) << 8;
  if (!is_short) bytes |= byte_at(10) << 16 | byte_at(11) << 24;
  const auto wrong = [&](const std::string& got) {
    fail(file, "is a .npy file of an unsupported kind: got " + got + ", expected integers in one or two dimensions",
         "Save the ids as numpy.uint16 or numpy.uint32 with numpy.save()");
  };
  if (byte_at(6) < 1 || byte_at(6) > 3 || header_at + bytes > all.size()) wrong("an unknown header");
  const auto header = npy_header_parser(all.substr(header_at, bytes)).parse();
  if (!header) wrong("a header of another form");
  const std::string& type = header->type;
  const bool integers = type.size() == 3 && (type[0] == '<' || type[0] == '|') && (type[1] == 'u' || type[1] == 'i') &&
                        (type[2] == '1' || type[2] == '2' || type[2] == '4' || type[2] == '8');
  if (!integers) wrong("elements of type '" + printable(type) + "'");
  const auto& shape = header->shape;
  if (shape.empty() || shape.size() > 2) wrong(std::to_string(shape.size()) + " dimensions");
  if (header->fortran_order && shape.size() == 2) wrong("Fortran order");
  token_layout l{.first_byte = header_at + bytes,
                 .tokens = shape[0],
                 .type = {.bytes = static_cast<std::size_t>(type[2] - '0'), .is_signed = type[1] == 'i'}};
  if (shape.size() == 2) {
    if (shape[1] > 0 && shape[0] > std::numeric_limits<std::uint64_t>::max() / shape[1])
      wrong("a shape beyond 64 bits");
    l.tokens *= shape[1];
  }
  check_size(file, l);
  return l;
}

MILLRACE_INLINE token_type type_of(const token_file_head& file, const token_layout_options& o) {
  token_type type = token_type_by_name(file.name);
  if (o.token_bytes > 0) type.bytes = o.token_bytes;
  return type;
}

/// Returns whether every other number of `bytes` bytes is 0 or, for 2 bytes, at most 3: the upper half of a wider id.
MILLRACE_INLINE bool has_empty_halves(std::span<const std::byte> front, std::size_t bytes) noexcept {
  constexpr std::size_t least = 32, least_values = 8;
  const std::size_t numbers = front.size() / bytes;
  if (numbers < least) return false;
  std::array<std::uint32_t, least_values> values{};
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < numbers; ++i) {
    std::uint32_t number = 0;
    std::memcpy(&number, front.data() + i * bytes, bytes);
    if (i % 2 == 1 && number > (bytes == 2 ? 3U : 0U)) return false;
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(distinct);
    if (i % 2 == 0 && distinct < least_values && std::find(values.begin(), end, number) == end)
      values[distinct++] = number;
  }
  return distinct == least_values;
}

/// Throws if the stored tokens seem wider than the name indicates. Halves of tokens would be wrong ids without an
/// error.
MILLRACE_INLINE void check_width(const token_file_head& file, const token_layout_options& o) {
  const std::size_t bytes = type_of(file, o).bytes;
  if (o.token_bytes > 0 || (bytes != 2 && bytes != 4) || !has_empty_halves(file.front, bytes)) return;
  const std::size_t wide = bytes == 2 && has_empty_halves(file.front, 4) ? 8 : 2 * bytes;
  fail(file,
       "seems to contain wider tokens than its name states: got numbers of " + std::to_string(wide) +
           " bytes, expected " + std::to_string(bytes) + " bytes",
       "Set token_files_options::token_bytes = " + std::to_string(wide) + ". If the tokens have " +
           std::to_string(bytes) + " bytes, set it to " + std::to_string(bytes));
}

MILLRACE_INLINE token_layout flat(const token_file_head& file, const token_layout_options& o) {
  token_layout l{.first_byte = o.header_bytes.value_or(0), .type = type_of(file, o)};
  if (l.first_byte > file.file_bytes)
    fail(file,
         "is shorter than its header: got " + std::to_string(file.file_bytes) + " bytes, expected at least " +
             std::to_string(l.first_byte),
         "Check token_files_options::header_bytes");
  const std::uint64_t bytes = file.file_bytes - l.first_byte;
  if (bytes % l.type.bytes != 0)
    fail(file,
         "has a partial token: got " + std::to_string(bytes) + " bytes, expected a multiple of " +
             std::to_string(l.type.bytes) + " bytes per token",
         "Write it again, or set token_files_options::token_bytes or header_bytes");
  l.tokens = bytes / l.type.bytes;
  return l;
}

}   // namespace token_headers

MILLRACE_INLINE token_type token_type_by_name(std::string_view name) noexcept {
  struct ending {
    std::string_view bits;
    std::size_t bytes;
  };
  constexpr ending endings[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}};
  const std::string_view end = name.substr(std::min(name.rfind('.'), name.size()));
  for (const ending& e : endings)
    if (end.size() > 2 && (end[1] == 'u' || end[1] == 'i') && end.substr(2) == e.bits)
      return {.bytes = e.bytes, .is_signed = end[1] == 'i'};
  return {};
}

MILLRACE_INLINE token_layout layout_of_tokens(const token_file_head& file, const token_layout_options& options) {
  using namespace token_headers;
  if (options.header_bytes) return flat(file, options);
  const file_kind kind = kind_of_file({.front = file.front, .file_bytes = file.file_bytes});
  if (kind == file_kind::npy || kind == file_kind::llm_c) {
    const token_layout l = kind == file_kind::npy ? npy(file) : llm_c(file);
    check_token_bytes(file, l, options);
    return l;
  }
  // A file of any kind is also a valid file of one-byte tokens. For other sizes, a file of a known kind contains no
  // tokens.
  const bool is_bytes = type_of(file, options).bytes == 1;
  if (kind != file_kind::unknown && !(is_bytes && is_textual(kind))) fail_as_container(file, kind);
  check_width(file, options);
  return flat(file, options);
}

namespace token_values {

template <class T>
std::int64_t value_at(const std::byte* stored, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, stored + i * sizeof(T), sizeof(T));
  return static_cast<std::int64_t>(value);   // a value of 2^63 or more becomes negative, which is not a valid id
}

template <class T>
std::size_t decode(const std::byte* stored, std::uint32_t max_id, std::span<std::uint32_t> ids) noexcept {
  const std::size_t count = ids.size();
  std::uint32_t* const to = ids.data();
  if constexpr (std::is_same_v<T, std::uint32_t>) {
    if (count > 0) std::memcpy(to, stored, count * sizeof(T));
  } else {
    constexpr std::size_t together = 16;   // a constant count, for which compilers generate vector instructions
    std::size_t done = 0;
    for (; done + together <= count; done += together) {
      T values[together];
      std::memcpy(values, stored + done * sizeof(T), sizeof values);
      for (std::size_t i = 0; i < together; ++i) to[done + i] = static_cast<std::uint32_t>(values[i]);
    }
    for (; done < count; ++done) to[done] = static_cast<std::uint32_t>(value_at<T>(stored, done));
  }
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (std::is_unsigned_v<T> && max_id >= largest) return count;
  // One pass without branches finds wrong ids. Negative ids are large as unsigned numbers.
  if constexpr (sizeof(T) < 8) {
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i < count; ++i) highest = std::max(highest, to[i]);
    if (highest <= std::min<std::uint64_t>(max_id, largest)) return count;
  } else {
    std::uint64_t signs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::uint64_t>(value_at<T>(stored, i));
      signs |= value | (max_id - value);
    }
    if (signs >> 63 == 0) return count;
  }
  std::size_t i = 0;
  while (static_cast<std::uint64_t>(value_at<T>(stored, i)) <= max_id) ++i;
  return i;
}

/// Calls `f` with a value of the type `type`.
template <class F>
auto with_type(token_type type, F f) {
  const bool s = type.is_signed;
  switch (type.bytes) {
    case 1: return s ? f(std::int8_t{}) : f(std::uint8_t{});
    case 4: return s ? f(std::int32_t{}) : f(std::uint32_t{});
    case 8: return s ? f(std::int64_t{}) : f(std::uint64_t{});
    default: return s ? f(std::int16_t{}) : f(std::uint16_t{});
  }
}

}   // namespace token_values

MILLRACE_INLINE std::size_t decode_tokens(const std::byte* stored, token_type type, std::uint32_t max_id,
                                          std::span<std::uint32_t> ids) noexcept {
  return token_values::with_type(type, [&]<class T>(T) { return token_values::decode<T>(stored, max_id, ids); });
}

MILLRACE_INLINE std::string token_file_text(const std::byte* stored, token_type type) {
  return token_values::with_type(type, [&]<class T>(T) {
    T value;
    std::memcpy(&value, stored, sizeof value);
    return std::to_string(value);
  });
}

}}}   // namespace millrace::detail
