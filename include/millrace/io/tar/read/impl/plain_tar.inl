// Definitions for plain_tar.hpp.
#pragma once

#include <millrace/io/tar/read/plain_tar.hpp>

#include <millrace/io/tar/format/tar_fields.hpp>
#include <millrace/io/tar/format/tar_header.hpp>

#include <algorithm>
#include <charconv>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE plain_tar::result plain_tar::next() {
  const std::uint64_t begin = next_bytes_;
  long_name_.clear();
  pax_size_.reset();
  std::uint64_t at = begin;
  header h{};
  if (!read_header(at, h)) return ended_ ? end_of_shard(at) : result::odd;
  const bool extended = h.type == 'x' || h.type == 'L';
  if (extended) {
    if (h.size_bytes == 0 || h.size_bytes > max_extension_bytes) return result::odd;
    const auto payload = text(window_.at(at + tar_block_bytes, static_cast<std::size_t>(h.size_bytes)));
    if (payload.size() < h.size_bytes || !(h.type == 'x' ? apply_pax(payload) : apply_long_name(payload, h)))
      return result::odd;
    const bool gnu = h.gnu;
    const char kind = h.type;
    at += tar_block_bytes + h.size_bytes + tar_padding(h.size_bytes);
    if (!read_header(at, h) || (kind == 'L' && h.gnu != gnu)) return result::odd;
  }
  const bool file = h.type == '0' || h.type == '\0' || h.type == '7';
  if (!file && (h.type < '1' || h.type > '6' || h.size_bytes > 0 || pax_size_)) return result::odd;
  if (!long_name_.empty()) name_.swap(long_name_);
  if (name_.empty() || (file && name_.back() == '/')) return result::odd;
  const std::uint64_t size_bytes = pax_size_.value_or(h.size_bytes);
  if (size_bytes > tar_max_payload_bytes) return result::odd;
  member_ = tar_member{.name = name_,
                       .size_bytes = size_bytes,
                       .offset_bytes = begin,
                       .payload_offset_bytes = at + tar_block_bytes,
                       .regular = file};
  next_bytes_ = at + tar_block_bytes + size_bytes + tar_padding(size_bytes);
  window_.payload_follows(size_bytes);
  return result::member;
}

MILLRACE_INLINE std::string_view plain_tar::text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

MILLRACE_INLINE bool plain_tar::read_header(std::uint64_t at, header& h) {
  using namespace std::string_view_literals;
  const std::string_view block = text(window_.at(at, tar_block_bytes));
  ended_ = false;
  if (block.size() < tar_block_bytes) return false;
  if (block[0] == '\0') {
    ended_ = at > 0 && all_zeros(block);
    return false;
  }
  const std::string_view magic = block.substr(257, 8);
  h.gnu = is_gnu_header(block);
  if ((!h.gnu && magic != "ustar\00000"sv) || !tar_checksum_is_right(block)) return false;
  const auto size_bytes = tar_size(block.substr(124, 12));
  if (!size_bytes || (at == 0 && !numbers_are_plain(block))) return false;
  // A sparse member, or a part of a sparse member.
  if (h.gnu && (block[386] != '\0' || block[483] != '\0')) return false;
  if (block[156] == '1' && block[157] == '\0') return false;   // libarchive may treat a link without a target as a file
  h.size_bytes = *size_bytes;
  h.type = block[156];
  const std::string_view prefix = h.gnu ? std::string_view() : tar_text(block, 345, 155);
  if (prefix.ends_with('/')) return false;
  name_.assign(prefix);
  if (!prefix.empty()) name_ += '/';
  name_ += tar_text(block, 0, 100);
  return true;
}

MILLRACE_INLINE bool plain_tar::numbers_are_plain(std::string_view block) noexcept {
  const auto plain = [&](std::size_t at, std::size_t size) {
    return tar_octal(block.substr(at, size)) || all_zeros(block.substr(at, size));
  };
  return plain(100, 8) && plain(108, 8) && plain(116, 8) && plain(136, 12) && plain(329, 8) && plain(337, 8);
}

MILLRACE_INLINE bool plain_tar::apply_long_name(std::string_view payload, const header& h) {
  const std::size_t end = payload.find('\0');
  if (!h.gnu || end == 0 || end + 1 != payload.size()) return false;
  long_name_ = payload.substr(0, end);
  return true;
}

MILLRACE_INLINE bool plain_tar::apply_pax(std::string_view records) {
  std::string_view key, value;
  while (!records.empty())
    if (!next_pax_record(records, key, value) || !apply_record(key, value)) return false;
  return true;
}

MILLRACE_INLINE bool plain_tar::apply_record(std::string_view key, std::string_view value) {
  const auto only = [value](auto allowed) {
    return !value.empty() && std::all_of(value.begin(), value.end(), allowed);
  };
  const auto is_ascii = [](char c) { return static_cast<signed char>(c) > 0; };   // plain char is unsigned on aarch64
  if (key == "path") {
    if (!long_name_.empty() || !only(is_ascii)) return false;
    long_name_ = value;
    return true;
  }
  if (key == "size") {
    if (pax_size_ || value.size() > 15 || !only([](char c) { return c >= '0' && c <= '9'; })) return false;
    std::uint64_t size_bytes = 0;
    std::from_chars(value.data(), value.data() + value.size(), size_bytes);
    pax_size_ = size_bytes;
    return true;
  }
  if (key == "mtime" || key == "atime" || key == "ctime" || key == "uid" || key == "gid")
    return value.size() <= 30 && only([](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-'; });
  if (key == "uname" || key == "gname" || key == "comment") return only(is_ascii);
  return false;
}

MILLRACE_INLINE plain_tar::result plain_tar::end_of_shard(std::uint64_t marker_at) {
  for (std::uint64_t at = marker_at;;) {
    const auto rest = window_.at(at, header_window::large_bytes);
    if (!all_zeros(text(rest)) || at + rest.size() > marker_at + tar_end_marker_bytes + max_padding_bytes)
      return result::odd;
    at += rest.size();
    if (rest.size() < header_window::large_bytes)
      return at >= marker_at + tar_end_marker_bytes ? result::end : result::odd;
  }
}

}}}   // namespace millrace::detail
