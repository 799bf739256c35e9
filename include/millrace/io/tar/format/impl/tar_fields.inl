// Definitions for tar_fields.hpp.
#pragma once

#include <millrace/io/tar/format/tar_fields.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::optional<std::uint64_t> tar_octal(std::string_view number) noexcept {
  std::size_t at = 0;
  while (at < number.size() && number[at] == ' ') ++at;
  const std::size_t first = at;
  std::uint64_t value = 0;   // at most twelve digits
  for (; at < number.size() && number[at] >= '0' && number[at] <= '7'; ++at)
    value = value << 3 | static_cast<unsigned char>(number[at] - '0');
  if (at == first) return std::nullopt;
  for (; at < number.size(); ++at)
    if (number[at] != ' ' && number[at] != '\0') return std::nullopt;
  return value;
}

MILLRACE_INLINE std::optional<std::uint64_t> tar_size(std::string_view number) noexcept {
  if (static_cast<unsigned char>(number[0]) != 0x80) return tar_octal(number);
  std::uint64_t value = 0;
  for (const char c : number.substr(1)) {
    if (value > tar_max_payload_bytes) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

MILLRACE_INLINE std::string_view tar_text(std::string_view block, std::size_t at, std::size_t size) noexcept {
  const std::string_view field = block.substr(at, size);
  return field.substr(0, std::min(field.find('\0'), size));
}

MILLRACE_INLINE bool all_zeros(std::string_view bytes) noexcept {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

MILLRACE_INLINE bool is_gnu_header(std::string_view block) noexcept {
  using namespace std::string_view_literals;
  return block.substr(257, 8) == "ustar  \0"sv;
}

MILLRACE_INLINE bool tar_checksum_is_right(std::string_view block) noexcept {
  constexpr std::uint64_t every_other_byte = 0x00ff00ff00ff00ff;
  // Adds eight bytes at a time to four sums of 16 bits. Each sum has 128 bytes, and therefore cannot overflow.
  std::uint64_t sums = 0;
  for (std::size_t at = 0; at < tar_block_bytes; at += sizeof sums) {
    std::uint64_t word = 0;
    std::memcpy(&word, block.data() + at, sizeof word);
    sums += (word & every_other_byte) + (word >> 8 & every_other_byte);
  }
  auto sum = static_cast<unsigned>((sums & 0xffff) + (sums >> 16 & 0xffff) + (sums >> 32 & 0xffff) + (sums >> 48));
  for (std::size_t i = 148; i < 156; ++i) sum += unsigned{' '} - static_cast<unsigned char>(block[i]);
  return tar_octal(block.substr(148, 8)) == sum;
}

MILLRACE_INLINE bool next_pax_record(std::string_view& records, std::string_view& key,
                                     std::string_view& value) noexcept {
  std::size_t length = 0;
  const char* const end = records.data() + std::min<std::size_t>(records.size(), 8);
  const auto number = std::from_chars(records.data(), end, length);
  const auto digits = static_cast<std::size_t>(number.ptr - records.data());
  if (digits == 0 || records[0] == '0' || length > records.size() || length < digits + 4 || records[digits] != ' ' ||
      records[length - 1] != '\n')
    return false;
  const std::string_view record = records.substr(digits + 1, length - digits - 2);
  const std::size_t equals = record.find('=');
  if (equals == std::string_view::npos) return false;
  key = record.substr(0, equals);
  value = record.substr(equals + 1);
  records.remove_prefix(length);
  return true;
}

MILLRACE_INLINE tar_header_chain::tar_header_chain(std::string_view bytes) {
  while (bytes.size() >= tar_block_bytes) {
    const std::string_view block = bytes.substr(0, tar_block_bytes);
    const char type = block[156];
    if (std::string_view("gxXLKAV").find(type) == std::string_view::npos) {
      main_ = block;
      return;
    }
    // A volume label has no payload. The size in its header is ignored.
    const auto size = type == 'V' ? std::optional<std::uint64_t>(0) : tar_size(block.substr(124, 12));
    sound_ = sound_ && tar_checksum_is_right(block);
    if (!size || *size > bytes.size() - tar_block_bytes) break;
    apply(type, bytes.substr(tar_block_bytes, static_cast<std::size_t>(*size)));
    const auto payload_bytes = static_cast<std::size_t>(*size) + tar_padding(*size);
    bytes.remove_prefix(std::min(bytes.size(), tar_block_bytes + payload_bytes));
  }
  sound_ = false;
}

MILLRACE_INLINE bool tar_header_chain::may_have_holes() const noexcept {
  // libarchive searches every GNU header for a map of holes, regardless of the type in the header.
  return holes_ || main_.empty() || main_[156] == 'S' || (is_gnu_header(main_) && main_[386] != '\0');
}

MILLRACE_INLINE std::optional<std::string> tar_header_chain::certain_name() const {
  if (!sound_ || main_.empty() || !tar_checksum_is_right(main_)) return std::nullopt;
  if (const char type = main_[156]; type != '0' && type != '\0' && type != '7') return std::nullopt;
  if (!long_name_.empty()) return std::string(long_name_);
  const std::string_view prefix = is_gnu_header(main_) ? std::string_view() : tar_text(main_, 345, 155);
  return std::string(prefix) + (prefix.empty() ? "" : "/") + std::string(tar_text(main_, 0, 100));
}

MILLRACE_INLINE void tar_header_chain::apply(char type, std::string_view payload) {
  if (type == 'L') long_name_ = tar_text(payload, 0, payload.size());
  if (type == 'L' && long_name_.empty()) sound_ = false;
  const bool extended = type == 'x' || type == 'X';   // 'X' is the type in archives of Solaris
  if (type != 'g' && !extended) return;
  std::string_view key, value, records = payload;
  while (!records.empty() && next_pax_record(records, key, value)) {
    if (extended && key == "path") long_name_ = value;
    holes_ |= key.starts_with("GNU.sparse.") || key == "SCHILY.realsize";
  }
  if (records.empty() || (records.size() < payload.size() && all_zeros(records))) return;
  sound_ = false;
  if (type == 'g') damage_ = "has a global pax header that is damaged or truncated";
}

}}}   // namespace millrace::detail
