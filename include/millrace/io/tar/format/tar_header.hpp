// Writes the headers of one tar member. If the name or the size does not fit into the ustar header, a pax header
// precedes the ustar header.
//
//   std::string out;
//   mr::detail::append_tar_header(out, "n01/0001.jpg", size_bytes);    // 512 bytes, or more with a pax header
//
// The bytes depend only on name and size. The mode is 0644, the time is 0, and the owner is empty. Names are written
// unchanged. A ustar header has space for a name of 100 bytes, and for a prefix (folders) of 155 bytes. Names that do
// not fit, and sizes of 8 GiB or more, are written to a pax header.
// Errors: none. Threads: pure functions; any thread.
// Format: POSIX.1-2017, pax utility, "ustar Interchange Format" and "pax Interchange Format".
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

constexpr std::size_t tar_block_bytes = 512;
constexpr std::size_t tar_end_marker_bytes = 2 * tar_block_bytes;
constexpr std::uint64_t tar_largest_size_bytes = (std::uint64_t{1} << 33) - 1;   // eleven octal digits

/// Returns the number of bytes that fill the last block after a payload of `size_bytes`.
constexpr std::size_t tar_padding(std::uint64_t size_bytes) noexcept {
  return static_cast<std::size_t>((tar_block_bytes - size_bytes % tar_block_bytes) % tar_block_bytes);
}

/// Returns the position of the slash that splits `name` into prefix and name, or npos if no slash is suitable.
std::size_t ustar_split(std::string_view name) noexcept;

/// Appends one header block. `type` is '0' for a file, and 'x' for a pax header. Requires that name and size fit.
void append_ustar_block(std::string& out, std::string_view prefix, std::string_view name, std::uint64_t size_bytes,
                        char type);

/// Appends the record "<length> <key>=<value>\n". The length includes its own digits.
void append_pax_record(std::string& out, std::string_view key, std::string_view value);

/// Appends all header blocks of a file with this name and size.
void append_tar_header(std::string& out, std::string_view name, std::uint64_t size_bytes);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/format/impl/tar_header.inl>
#endif
