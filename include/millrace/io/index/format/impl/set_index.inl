// Definitions for set_index.hpp.
#pragma once

#include <millrace/io/index/format/set_index.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/hex.hpp>
#include <millrace/base/text.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::string_view set_index_mark = "millrace set index 1\n";
inline constexpr std::uint64_t longest_shard_bytes = std::uint64_t{2} << 40;   // of a shard that an index can describe

/// Appends text with its blanks and non-printable bytes written as %XX.
MILLRACE_INLINE void append_escaped(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (c > ' ' && c <= '~' && c != '%') to += c;
    else to += "%" + hex(static_cast<unsigned char>(c), 2);
  }
}

/// Reverses append_escaped(); returns nothing if append_escaped() cannot have written `text`.
MILLRACE_INLINE std::optional<std::string> unescaped(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const char* const end = text.data() + i + 3;
      if (std::from_chars(text.data() + i + 1, end, byte, 16).ptr != end) return std::nullopt;
      i += 2;
    }
    plain += static_cast<char>(byte);
  }
  std::string again;
  append_escaped(again, plain);
  return again == text ? std::optional(std::move(plain)) : std::nullopt;
}

/// Reads a set index from front to end.
class set_index_parser {
 public:
  set_index_parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::vector<set_index_shard> shards() {
    if (text_.size() > set_index::max_bytes) fail("it has more than 256 MiB");
    if (!text_.starts_with(set_index_mark)) fail("it does not begin with the mark of a set index of this version");
    at_ = set_index_mark.size();
    std::vector<set_index_shard> list;
    while (at_ < text_.size() && !text_.substr(at_).starts_with("end ")) {
      list.push_back(shard());
      if (list.size() > 1 && list[list.size() - 2].name >= list.back().name)
        fail("its shards are not sorted, or one occurs twice");
    }
    end(list.size());
    return list;
  }

 private:
  set_index_shard shard() {
    set_index_shard s;
    s.size_bytes = number(longest_shard_bytes);
    s.samples = number(std::min<std::uint64_t>(s.size_bytes / 512, 0xfffffffe));   // each occupies a block of a tar
    s.fingerprint = digits(word());
    s.index_bytes = number(s.size_bytes + (std::uint64_t{1} << 20));
    const std::string_view marked = word();
    if (marked != "marked" && marked != "unmarked") fail("a word is neither marked nor unmarked");
    s.without_end_marker = marked == "unmarked";
    const std::string_view version = word();
    if (version != "-") s.version = plain(version == "%2d" ? "-" : version);
    s.name = plain(word('\n'));
    return s;
  }

  void end(std::size_t shards) {
    const std::size_t body = at_;
    if (word() != "end") fail("it is truncated");
    if (number(~std::uint64_t{0}) != shards) fail("its number of shards is wrong");
    if (word('\n') != hex(crc32c(bytes_of(text_.substr(0, body))), 8)) fail("its checksum is wrong");
    if (at_ != text_.size()) fail("data follows its end");
  }

  /// Returns the text before the next separator, and skips both.
  std::string_view word(char separator = ' ') {
    const std::size_t end = text_.find_first_of(" \n", at_);
    if (end == std::string_view::npos || text_[end] != separator || end == at_) fail("a line is not complete");
    const std::string_view text = text_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  std::uint64_t number(std::uint64_t limit) {
    const std::string_view text = word();
    std::uint64_t value = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (wrong != std::errc{} || end != text.data() + text.size() || (text.size() > 1 && text[0] == '0'))
      fail("it lacks a number");
    if (value > limit) fail("it has a number that exceeds its limit");
    return value;
  }

  std::uint64_t digits(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (wrong != std::errc{} || end != text.data() + text.size() || hex(value, 16) != text)
      fail("it lacks a digest");
    return value;
  }

  std::string plain(std::string_view word) {
    auto text = unescaped(word);
    if (!text) fail("a name or a version is not escaped correctly");
    return std::move(*text);
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw data_error("the set index cannot be used: " + problem,
                     "Write it again with inspect --set-index, or remove it",
                     {.stage = "index", .shard = path_, .offset_bytes = std::min(at_, text_.size())});
  }

  const std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

MILLRACE_INLINE set_index::set_index(std::vector<set_index_shard> shards) : shards_(std::move(shards)) {
  std::sort(shards_.begin(), shards_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

MILLRACE_INLINE bool set_index::has_mark(std::string_view text) noexcept {
  const std::string_view of_any_version = set_index_mark.substr(0, set_index_mark.find_first_of("0123456789"));
  return text.starts_with(of_any_version);
}

MILLRACE_INLINE set_index set_index::parse(std::string_view text, const std::string& path) {
  set_index index;
  index.shards_ = set_index_parser(text, path).shards();
  return index;
}

MILLRACE_INLINE std::string set_index::text() const {
  std::string text(set_index_mark);
  for (const set_index_shard& s : shards_) {
    text += std::to_string(s.size_bytes) + " " + std::to_string(s.samples) + " " + hex(s.fingerprint, 16) + " " +
            std::to_string(s.index_bytes) + (s.without_end_marker ? " unmarked " : " marked ");
    if (s.version.empty()) text += "-";
    else if (s.version == "-") text += "%2d";
    else append_escaped(text, s.version);
    text += " ";
    append_escaped(text, s.name);
    text += "\n";
  }
  const std::uint32_t checksum = crc32c(bytes_of(text));
  return text + "end " + std::to_string(shards_.size()) + " " + hex(checksum, 8) + "\n";
}

MILLRACE_INLINE const set_index_shard* set_index::find(std::string_view shard) const noexcept {
  while (!shard.empty()) {
    const auto at = std::lower_bound(shards_.begin(), shards_.end(), shard,
                                     [](const set_index_shard& s, std::string_view name) { return s.name < name; });
    if (at != shards_.end() && at->name == shard) return &*at;
    const std::size_t slash = shard.find('/');
    if (slash == std::string_view::npos) return nullptr;
    shard.remove_prefix(slash + 1);
  }
  return nullptr;
}

MILLRACE_INLINE std::string_view common_folder(const std::vector<std::string>& names) noexcept {
  if (names.empty()) return {};
  std::string_view common = names.front();
  for (const std::string& name : names)
    common = common.substr(0, static_cast<std::size_t>(
                                  std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first -
                                  common.begin()));
  return common.substr(0, common.rfind('/') + 1);   // without a slash, npos + 1 is 0
}

}}}  // namespace millrace::detail
