// Parses the header blocks of a tar archive: numbers, texts, the checksum, pax records.
//
//   std::optional<std::uint64_t> size = mr::detail::tar_size(block.substr(124, 12));     // octal or base-256
//   std::string_view key, value;
//   while (!records.empty())
//     if (!mr::detail::next_pax_record(records, key, value)) return;   // malformed
//   mr::detail::tar_header_chain headers(bytes);   // all headers of one member; extended headers are first
//   headers.main();   headers.damage();   headers.certain_name();
//
// Errors: reported by the return value, never thrown. Threads: pure functions; any thread. Lifetime: views point into
// the bytes of the caller.
// Formats: POSIX.1-2017, pax utility; GNU tar manual, "Basic Tar Format".
#pragma once

#include <millrace/io/tar/format/tar_header.hpp>
#include <millrace/item/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

constexpr std::uint64_t tar_max_payload_bytes = std::uint64_t{1} << 40;

/// Returns an octal number, or nothing if it is malformed. Blanks may precede the digits, and blanks or NULs may
/// follow.
std::optional<std::uint64_t> tar_octal(std::string_view number) noexcept;

/// Returns a size in octal or base-256. Returns nothing if the size is malformed or too large.
std::optional<std::uint64_t> tar_size(std::string_view number) noexcept;

/// Returns the text at offset `at`. The text ends before its first NUL, or after `size` bytes.
std::string_view tar_text(std::string_view block, std::size_t at, std::size_t size) noexcept;

/// Returns whether every byte is 0.
bool all_zeros(std::string_view bytes) noexcept;

/// Returns whether the block has the signature of a GNU header.
bool is_gnu_header(std::string_view block) noexcept;

/// Returns whether the checksum of a header block is correct.
bool tar_checksum_is_right(std::string_view block) noexcept;

/// Removes one record "<length> <key>=<value>\n" from the front of `records`. The length includes its own digits.
/// Returns false if the record is malformed.
bool next_pax_record(std::string_view& records, std::string_view& key, std::string_view& value) noexcept;

/// The header blocks of a member: the extended headers with their payloads, followed by the member's own header. The
/// chain stores views of the bytes.
class tar_header_chain {
 public:
  explicit tar_header_chain(std::string_view bytes);

  /// Returns the member's own header block, or "" if it is missing.
  std::string_view main() const noexcept { return main_; }

  /// Returns the description of damage that libarchive would not report, or "" if there is none.
  std::string_view damage() const noexcept { return damage_; }

  /// Returns whether a header declares the payload as sparse. A payload that is declared as sparse may still have no
  /// holes. If the member's own header is missing, returns true.
  bool may_have_holes() const noexcept;

  /// Returns the member's name if all headers are valid and the member is a file. Otherwise returns nothing.
  std::optional<std::string> certain_name() const;

 private:
  void apply(char type, std::string_view payload);

  std::string_view main_, damage_, long_name_;
  bool sound_ = true, holes_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/format/impl/tar_fields.inl>
#endif
