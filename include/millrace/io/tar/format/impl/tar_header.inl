// Definitions for tar_header.hpp.
#pragma once

#include <millrace/io/tar/format/tar_header.hpp>

#include <millrace/base/text.hpp>
#include <millrace/item/bytes.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::size_t ustar_split(std::string_view name) noexcept {
  if (name.size() > 256) return std::string_view::npos;
  const std::size_t slash = name.find('/', name.size() > 101 ? name.size() - 101 : 1);
  return slash != std::string_view::npos && slash > 0 && slash <= 155 && slash + 1 < name.size()
             ? slash
             : std::string_view::npos;
}

MILLRACE_INLINE void append_ustar_block(std::string& out, std::string_view prefix, std::string_view name,
                                        std::uint64_t size_bytes, char type) {
  std::array<char, tar_block_bytes> block{};
  const auto put = [&block](std::size_t at, std::string_view text) {
    if (!text.empty()) std::memcpy(block.data() + at, text.data(), text.size());
  };
  const auto put_octal = [&block](std::size_t at, std::size_t digits, std::uint64_t value) {
    for (std::size_t i = digits; i-- > 0; value /= 8) block[at + i] = static_cast<char>('0' + value % 8);
  };
  put(0, name);
  put_octal(100, 7, 0644);
  put_octal(108, 7, 0);   // user
  put_octal(116, 7, 0);   // group
  put_octal(124, 11, size_bytes);
  put_octal(136, 11, 0);   // time
  put(148, "        ");    // while the checksum is computed, its own field contains blanks
  block[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  put_octal(329, 7, 0);   // device numbers
  put_octal(337, 7, 0);
  put(345, prefix);
  std::uint64_t checksum = 0;
  for (const char c : block) checksum += static_cast<unsigned char>(c);
  put_octal(148, 6, checksum);
  block[154] = '\0';
  out.append(block.data(), block.size());
}

MILLRACE_INLINE void append_pax_record(std::string& out, std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;   // blank, '=', newline
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  out += std::to_string(length);
  out.append(" ").append(key).append("=").append(value).append("\n");
}

MILLRACE_INLINE void append_tar_header(std::string& out, std::string_view name, std::uint64_t size_bytes) {
  const std::size_t split = name.size() <= 100 ? std::string_view::npos : ustar_split(name);
  const bool name_fits = name.size() <= 100 || split != std::string_view::npos;
  const bool size_fits = size_bytes <= tar_largest_size_bytes;
  if (!name_fits || !size_fits) {
    std::string records;
    if (!is_utf8(name)) append_pax_record(records, "hdrcharset", "BINARY");
    if (!name_fits) append_pax_record(records, "path", name);
    if (!size_fits) append_pax_record(records, "size", std::to_string(size_bytes));
    append_ustar_block(out, "", "PaxHeader", records.size(), 'x');
    out += records;
    out.append(tar_padding(records.size()), '\0');
  }
  const bool cut = split != std::string_view::npos;
  const std::string_view prefix = cut ? name.substr(0, split) : "";
  const std::string_view base = cut ? name.substr(split + 1) : name.substr(0, std::min<std::size_t>(name.size(), 100));
  append_ustar_block(out, prefix, base, size_fits ? size_bytes : 0, '0');
}

}}}   // namespace millrace::detail
