// The headers of a tar archive in which nothing is unusual, without its payloads.
//
//   detail::plain_tar tar(source, pool);
//   while (tar.next() == detail::plain_tar::found::member) use(tar.member());
//
// Reads ustar and GNU headers, long names of both and of pax, sizes of all three. Whatever is damaged, rare or in doubt
// (sparse members, pax names beyond ASCII, headers without the mark of ustar, ...) is only called `odd`: tar_reader has
// to decide. So the two agree wherever this one says `member` or `end`, and no rule of damage is written down twice.
// Errors: those of the source. Threads: one.
// Format: POSIX.1-2017, pax utility, "ustar Interchange Format" and "pax Interchange Format"; GNU tar manual, section
// "Basic Tar Format".
#pragma once

#include <millrace/io/header_window.hpp>
#include <millrace/io/tar_header.hpp>
#include <millrace/io/tar_reader.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace::inline MILLRACE_ABI::detail {

class plain_tar {
 public:
  enum class found { member, end, odd };

  plain_tar(byte_source& source, block_pool& pool) : window_(source, pool) {}

  found next() {
    const std::uint64_t begin = next_bytes_;
    long_name_.clear();
    pax_size_.reset();
    std::uint64_t at = begin;
    header h{};
    if (!read_header(at, h)) return ended_ ? end_of_shard(at) : found::odd;
    const bool extended = h.type == 'x' || h.type == 'L';
    if (extended) {
      if (h.size_bytes == 0 || h.size_bytes > most_extension_bytes) return found::odd;
      const auto payload = text(window_.at(at + tar_block_bytes, static_cast<std::size_t>(h.size_bytes)));
      if (payload.size() < h.size_bytes || !(h.type == 'x' ? take_pax(payload) : take_long_name(payload, h)))
        return found::odd;
      const bool gnu = h.gnu;
      const char kind = h.type;
      at += tar_block_bytes + h.size_bytes + tar_padding(h.size_bytes);
      if (!read_header(at, h) || (kind == 'L' && h.gnu != gnu)) return found::odd;
    }
    const bool file = h.type == '0' || h.type == '\0' || h.type == '7';
    if (!file && (h.type < '1' || h.type > '6' || h.size_bytes > 0 || pax_size_)) return found::odd;
    if (!long_name_.empty()) name_.swap(long_name_);
    if (name_.empty() || (file && name_.back() == '/')) return found::odd;
    const std::uint64_t size_bytes = pax_size_.value_or(h.size_bytes);
    if (size_bytes > most_payload_bytes) return found::odd;
    member_ = {.name = name_, .size_bytes = size_bytes, .offset_bytes = begin,
               .payload_offset_bytes = at + tar_block_bytes, .regular = file};
    next_bytes_ = at + tar_block_bytes + size_bytes + tar_padding(size_bytes);
    window_.payload_follows(size_bytes);
    return found::member;
  }

  /// The name is valid until the next call of next().
  const tar_member& member() const noexcept { return member_; }

 private:
  static constexpr std::uint64_t most_extension_bytes = 64 << 10;
  static constexpr std::uint64_t most_payload_bytes = std::uint64_t{1} << 40;
  static constexpr std::uint64_t most_padding_bytes = std::uint64_t{16} << 20;

  static constexpr std::uint64_t every_other_byte = 0x00ff00ff00ff00ff;

  struct header {
    std::uint64_t size_bytes = 0;
    char type = 0;
    bool gnu = false;
  };

  static std::string_view text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::string_view field(std::string_view block, std::size_t at, std::size_t size) noexcept {
    const std::string_view whole = block.substr(at, size);
    return whole.substr(0, std::min(whole.find('\0'), size));
  }

  /// Sets name_ too, to what the header alone says.
  bool read_header(std::uint64_t at, header& h) {
    using namespace std::string_view_literals;
    const std::string_view block = text(window_.at(at, tar_block_bytes));
    ended_ = false;
    if (block.size() < tar_block_bytes) return false;
    if (block[0] == '\0') {
      ended_ = at > 0 && all_zeros(block);
      return false;
    }
    const std::string_view magic = block.substr(257, 8);
    h.gnu = magic == "ustar  \0"sv;
    if ((!h.gnu && magic != "ustar\00000"sv) || !checksum_holds(block)) return false;
    const auto size_bytes = size_of(block.substr(124, 12));
    if (!size_bytes || (at == 0 && !numbers_are_plain(block))) return false;
    if (h.gnu && (block[386] != '\0' || block[483] != '\0')) return false;   // parts of a sparse member
    h.size_bytes = *size_bytes;
    h.type = block[156];
    const std::string_view prefix = h.gnu ? std::string_view() : field(block, 345, 155);
    if (prefix.ends_with('/')) return false;
    name_.assign(prefix);
    if (!prefix.empty()) name_ += '/';
    name_ += field(block, 0, 100);
    return true;
  }

  static bool all_zeros(std::string_view bytes) noexcept {
    return bytes.find_first_not_of('\0') == std::string_view::npos;
  }

  /// Digits with blanks before and a blank or NUL behind; nothing if it is anything else.
  static std::optional<std::uint64_t> octal(std::string_view number) noexcept {
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

  static std::optional<std::uint64_t> size_of(std::string_view number) noexcept {
    if (static_cast<unsigned char>(number[0]) != 0x80) return octal(number);
    std::uint64_t value = 0;
    for (const char c : number.substr(1)) {
      if (value > most_payload_bytes) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }

  static bool checksum_holds(std::string_view block) noexcept {
    // Eight bytes at a time, in four sums of 16 bits: the 128 bytes of each stay far below 65,536.
    std::uint64_t sums = 0;
    for (std::size_t at = 0; at < tar_block_bytes; at += sizeof sums) {
      std::uint64_t word = 0;
      std::memcpy(&word, block.data() + at, sizeof word);
      sums += (word & every_other_byte) + (word >> 8 & every_other_byte);
    }
    auto sum = static_cast<unsigned>((sums & 0xffff) + (sums >> 16 & 0xffff) + (sums >> 32 & 0xffff) + (sums >> 48));
    for (std::size_t i = 148; i < 156; ++i) sum += unsigned{' '} - static_cast<unsigned char>(block[i]);
    return octal(block.substr(148, 8)) == sum;
  }

  /// A reader of archives wants all numbers of the first header to be well-formed before it takes it for one.
  static bool numbers_are_plain(std::string_view block) noexcept {
    const auto plain = [&](std::size_t at, std::size_t size) {
      return octal(block.substr(at, size)) || all_zeros(block.substr(at, size));
    };
    return plain(100, 8) && plain(108, 8) && plain(116, 8) && plain(136, 12) && plain(329, 8) && plain(337, 8);
  }

  bool take_long_name(std::string_view payload, const header& h) {
    const std::size_t end = payload.find('\0');
    if (!h.gnu || end == 0 || end + 1 != payload.size()) return false;
    long_name_ = payload.substr(0, end);
    return true;
  }

  /// "<length> <key>=<value>\n", where the length counts itself.
  bool take_pax(std::string_view records) {
    while (!records.empty()) {
      std::size_t length = 0;
      const char* const end = records.data() + std::min<std::size_t>(records.size(), 6);
      const auto number = std::from_chars(records.data(), end, length);
      const auto digits = static_cast<std::size_t>(number.ptr - records.data());
      if (digits == 0 || records[0] == '0' || length > records.size() || length < digits + 4 ||
          records[digits] != ' ' || records[length - 1] != '\n')
        return false;
      const std::string_view record = records.substr(digits + 1, length - digits - 2);
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos || !take_record(record.substr(0, equals), record.substr(equals + 1)))
        return false;
      records.remove_prefix(length);
    }
    return true;
  }

  bool take_record(std::string_view key, std::string_view value) {
    const auto only = [value](auto allowed) {
      return !value.empty() && std::all_of(value.begin(), value.end(), allowed);
    };
    if (key == "path") {
      if (!long_name_.empty() || !only([](char c) { return c > 0; })) return false;
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
    if (key == "uname" || key == "gname" || key == "comment") return only([](char c) { return c > 0; });
    return false;
  }

  /// Whatever is not as it should be is for others to complain about.
  found end_of_shard(std::uint64_t marker_at) {
    for (std::uint64_t at = marker_at;;) {
      const auto rest = window_.at(at, header_window::large_bytes);
      if (!all_zeros(text(rest)) || at + rest.size() > marker_at + tar_end_marker_bytes + most_padding_bytes)
        return found::odd;
      at += rest.size();
      if (rest.size() < header_window::large_bytes)
        return at >= marker_at + tar_end_marker_bytes ? found::end : found::odd;
    }
  }

  header_window window_;
  tar_member member_{};
  std::uint64_t next_bytes_ = 0;
  std::string name_, long_name_;
  std::optional<std::uint64_t> pax_size_;
  bool ended_ = false;
};

}  // namespace millrace::inline MILLRACE_ABI::detail
