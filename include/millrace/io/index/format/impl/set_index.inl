// Definitions for set_index.hpp.
#pragma once

#include <millrace/io/index/format/set_index.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::string_view set_index_mark = "millrace set index 1\n";
inline constexpr std::uint64_t longest_shard_bytes = std::uint64_t{2} << 40;   // maximum size of a shard with an index

/// Appends text with its blanks and non-printable bytes written as %XX.
MILLRACE_RARE void append_index_name(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (c > ' ' && c <= '~' && c != '%') to += c;
    else to += "%" + hex(static_cast<unsigned char>(c), 2);
  }
}

/// Returns whether append_index_name() leaves a text unchanged.
MILLRACE_RARE bool is_plain(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~' && c != '%'; });
}

/// Reverses append_index_name(). Returns nothing if append_index_name() cannot have written `text`.
MILLRACE_RARE std::optional<std::string> unescaped_index_name(std::string_view text) {
  if (is_plain(text)) return std::string(text);
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
  append_index_name(again, plain);
  return again == text ? std::optional(std::move(plain)) : std::nullopt;
}

/// Returns the number of slashes in a name.
MILLRACE_RARE std::size_t slashes_of(std::string_view name) noexcept {
  return static_cast<std::size_t>(std::count(name.begin(), name.end(), '/'));
}

/// Checks a complete set index, and decodes single lines.
class set_index_parser {
 public:
  set_index_parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  /// Checks the text, and returns the start of each line.
  MILLRACE_RARE set_index::checked check() {
    if (text_.size() > set_index::max_bytes) fail("it has more than 256 MiB");
    if (!text_.starts_with(set_index_mark)) fail("it does not begin with the mark of a set index of this version");
    at_ = set_index_mark.size();
    set_index::checked result;
    std::string last;
    while (at_ < text_.size() && !text_.substr(at_).starts_with("end ")) {
      result.lines.push_back(static_cast<std::uint32_t>(at_));
      set_index_shard s = shard();
      if (result.lines.size() > 1 && last >= s.name) fail("its shards are not sorted, or one occurs twice");
      result.slashes = std::max(result.slashes, slashes_of(s.name));
      last = std::move(s.name);
    }
    end(result.lines.size());
    return result;
  }

  MILLRACE_RARE set_index_shard shard() {
    set_index_shard s;
    s.size_bytes = number(longest_shard_bytes);
    // Each sample uses at least a block of the archive.
    s.samples = number(std::min<std::uint64_t>(s.size_bytes / 512, 0xfffffffe));
    s.fingerprint = digits(word());
    s.index_bytes = number(s.size_bytes + (std::uint64_t{1} << 20));
    const std::string_view marked = word();
    if (marked != "marked" && marked != "unmarked") fail("a word is neither marked nor unmarked");
    s.without_end_marker = marked == "unmarked";
    const std::string_view version = word();
    if (version != "-") s.version = version == "%2d" ? "-" : plain(version);
    s.name = plain(word('\n'));
    return s;
  }

 private:
  MILLRACE_RARE void end(std::size_t shards) {
    const std::size_t body = at_;
    if (word() != "end") fail("it is truncated");
    if (number(~std::uint64_t{0}) != shards) fail("its number of shards is wrong");
    if (word('\n') != hex(crc32c(bytes_of(text_.substr(0, body))), 8)) fail("its checksum is wrong");
    if (at_ != text_.size()) fail("data follows its end");
  }

  /// Returns the text before the next separator. Moves to the position after the separator.
  MILLRACE_RARE std::string_view word(char separator = ' ') {
    std::size_t end = at_;
    while (end < text_.size() && text_[end] != ' ' && text_[end] != '\n') ++end;
    if (end == text_.size() || text_[end] != separator || end == at_) fail("a line is not complete");
    const std::string_view text = text_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  MILLRACE_RARE std::uint64_t number(std::uint64_t limit) {
    const std::string_view text = word();
    const std::optional<std::uint64_t> value = decimal_number(text);
    if (!value || (text.size() > 1 && text[0] == '0')) fail("it lacks a number");
    if (*value > limit) fail("it has a number that exceeds its limit");
    return *value;
  }

  MILLRACE_RARE std::uint64_t digits(std::string_view text) {
    std::uint64_t value = 0;
    if (text.size() != 16) fail("it lacks a digest");
    for (const char c : text) {
      const bool is_letter = c >= 'a' && c <= 'f';
      if (!is_letter && (c < '0' || c > '9')) fail("it lacks a digest");
      value = value << 4 | static_cast<std::uint64_t>(is_letter ? c - 'a' + 10 : c - '0');
    }
    return value;
  }

  std::string plain(std::string_view word) {
    auto text = unescaped_index_name(word);
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

MILLRACE_RARE set_index::set_index(std::vector<set_index_shard> shards) : text_(set_index_mark) {
  std::sort(shards.begin(), shards.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const set_index_shard& s : shards) {
    lines_.push_back(static_cast<std::uint32_t>(text_.size()));
    slashes_ = std::max(slashes_, slashes_of(s.name));
    text_ += std::to_string(s.size_bytes) + " " + std::to_string(s.samples) + " " + hex(s.fingerprint, 16) + " " +
             std::to_string(s.index_bytes) + (s.without_end_marker ? " unmarked " : " marked ");
    if (s.version.empty()) text_ += "-";
    else if (s.version == "-") text_ += "%2d";
    else append_index_name(text_, s.version);
    text_ += " ";
    append_index_name(text_, s.name);
    text_ += "\n";
  }
  const std::uint32_t checksum = crc32c(bytes_of(text_));
  text_ += "end " + std::to_string(lines_.size()) + " " + hex(checksum, 8) + "\n";
}

MILLRACE_RARE bool set_index::has_mark(std::string_view text) noexcept {
  const std::string_view of_any_version = set_index_mark.substr(0, set_index_mark.find_first_of("0123456789"));
  return text.starts_with(of_any_version);
}

MILLRACE_RARE set_index set_index::parse(std::string text, const std::string& path) {
  checked result = set_index_parser(text, path).check();
  result.text = std::move(text);
  return set_index(std::move(result));
}

MILLRACE_RARE std::vector<set_index_shard> set_index::shards() const {
  std::vector<set_index_shard> all;
  all.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) all.push_back(decoded(i));
  return all;
}

MILLRACE_RARE std::string_view set_index::line(std::size_t shard) const noexcept {
  const std::string_view rest = std::string_view(text_).substr(lines_[shard]);
  return rest.substr(0, rest.find('\n') + 1);
}

MILLRACE_RARE set_index_shard set_index::decoded(std::size_t shard) const {
  const std::string unnamed;
  return set_index_parser(line(shard), unnamed).shard();
}

MILLRACE_RARE int set_index::compare_name(std::size_t shard, std::string_view with) const {
  std::string_view name = line(shard);
  name.remove_suffix(1);
  name.remove_prefix(name.rfind(' ') + 1);
  return name.find('%') == std::string_view::npos ? name.compare(with) : unescaped_index_name(name)->compare(with);
}

MILLRACE_RARE std::optional<set_index_shard> set_index::find_from(std::size_t& nearby, std::string_view shard) const {
  const auto remove_folder = [&shard] { shard.remove_prefix(shard.find('/') + 1); };
  std::size_t slashes = slashes_of(shard);
  for (; slashes > slashes_; --slashes) remove_folder();
  for (; !shard.empty(); --slashes) {
    if (nearby >= size() || compare_name(nearby, shard) != 0) {
      const auto at = std::partition_point(lines_.begin(), lines_.end(), [&](const std::uint32_t& begin) {
        return compare_name(static_cast<std::size_t>(&begin - lines_.data()), shard) < 0;
      });
      nearby = static_cast<std::size_t>(at - lines_.begin());
    }
    if (nearby < size() && compare_name(nearby, shard) == 0) return decoded(nearby++);
    if (slashes == 0) return std::nullopt;
    remove_folder();
  }
  return std::nullopt;
}

}}}   // namespace millrace::detail
