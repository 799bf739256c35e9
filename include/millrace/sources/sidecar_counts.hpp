// Finds out how many samples shards have, from files of other tools: for shards that cannot have a Millrace index.
//
//   auto counts = mr::sidecar_counts(shards);                                  // one std::optional for each shard
//   auto more = mr::sidecar_counts(shards, {.wids_file = "shardindex.json"});
//   if (counts[k]) plan_with(*counts[k]);              // compare with the samples read, at the end of the shard
//
// Looks beside each shard for DALI's "<name up to its first dot>.idx" and for OpenCLIP's "sizes.json". If a wids file
// is named, it is read, too ("url" and "nsamples"). A count on which two files disagree is unknown.
// The offsets in these files are not even read. The offsets of wds2idx are wrong for pax headers and for long names.
// Checking the header at each offset would amount to the scan that builds a Millrace index
// (io/index/tar_index_scan.hpp).
// Errors: data_error, with file and offset, for a file whose content does not match its name; io_error for a file that
// cannot be read. Threads: no shared state.
// Formats: DALI, "Creating an Index" (wds2idx); webdataset/wids, "wids-shard-index-v1"; JSON as in RFC 8259.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/sources/shard_list.hpp>

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of sidecar_counts().
struct sidecar_counts_options {
  std::string wids_file{};   ///< path of a wids index; empty: none
};

namespace detail {

/// Reads JSON. At the end of each object, passes its members that are strings or whole numbers to the callable.
class json_objects {
 public:
  struct member {
    std::string key{};
    std::string text{};                       // content of a string
    std::optional<std::uint64_t> number{};
  };

  json_objects(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  template <class Take>
  void for_each(const Take& take) {
    value(take, 0);
    skip_blanks();
    if (at_ < text_.size()) fail();
  }

 private:
  static constexpr int deepest = 64;

  [[noreturn]] void fail() const {
    throw data_error("the file is not valid JSON here", "Remove it, or write it again",
                     {.stage = "index", .shard = std::string(path_), .key = {}, .offset_bytes = at_});
  }
  void skip_blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool next_is(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  template <class Take>
  member value(const Take& take, int depth) {
    member m;
    if (depth > deepest) fail();
    if (next_is('{')) {
      std::vector<member> members;
      if (!next_is('}')) {
        do {
          if (!next_is('"')) fail();
          std::string key = string_behind_quote();
          if (!next_is(':')) fail();
          members.push_back(value(take, depth + 1));
          members.back().key = std::move(key);
        } while (next_is(','));
        if (!next_is('}')) fail();
      }
      take(members);
    } else if (next_is('[')) {
      if (next_is(']')) return m;
      do value(take, depth + 1);
      while (next_is(','));
      if (!next_is(']')) fail();
    } else if (next_is('"')) {
      m.text = string_behind_quote();
    } else {
      const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      const std::string_view word = text_.substr(at_, end - at_);
      std::uint64_t number = 0;
      const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
      if (read.ec == std::errc() && read.ptr == word.data() + word.size()) m.number = number;
      else if (word.empty() || (word != "true" && word != "false" && word != "null" &&
                                word.find_first_not_of("0123456789+-.eE") != std::string_view::npos))
        fail();
      at_ = end;
    }
    return m;
  }

  std::string string_behind_quote() {
    std::string out;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      constexpr std::string_view escapes = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      if (++at_ >= text_.size()) fail();
      const std::size_t which = escapes.find(text_[at_]);
      if (which != std::string_view::npos) out += meant[which];
      else if (text_[at_] == 'u') append_code_unit(out);
      else fail();
    }
    if (at_ >= text_.size()) fail();
    ++at_;
    return out;
  }

  /// Appends a \u escape as UTF-8. Surrogate pairs are not joined: file names do not contain them.
  void append_code_unit(std::string& out) {
    unsigned unit = 0;
    const char* const digits = text_.data() + at_ + 1;
    if (text_.size() - at_ <= 4 || std::from_chars(digits, digits + 4, unit, 16).ptr != digits + 4) fail();
    at_ += 4;
    if (unit < 0x80) {
      out += static_cast<char>(unit);
    } else if (unit < 0x800) {
      out += static_cast<char>(0xc0 | unit >> 6);
      out += static_cast<char>(0x80 | (unit & 63));
    } else {
      out += static_cast<char>(0xe0 | unit >> 12);
      out += static_cast<char>(0x80 | (unit >> 6 & 63));
      out += static_cast<char>(0x80 | (unit & 63));
    }
  }

  std::string_view text_, path_;
  std::size_t at_ = 0;
};

inline std::string_view name_in_folder(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

/// Returns a file's content, of a long file at least its first `max_bytes`; nothing if the file does not exist.
inline std::optional<std::string> small_file(const std::string& path, std::size_t max_bytes = std::size_t{64} << 20) {
  if (!exists(path)) return std::nullopt;
  file_source source(path);
  std::string text(std::size_t{64} << 10, '\0');
  for (std::size_t filled = 0;;) {
    filled += read_fully(source, filled, std::as_writable_bytes(std::span(text).subspan(filled)));
    if (filled < text.size() || filled >= max_bytes) {
      text.resize(filled);
      return text;
    }
    text.resize(text.size() * 2);
  }
}

/// Returns the count from the first line: "v1.2 <samples>".
inline std::uint64_t count_of_dali_index(std::string_view text, const std::string& path) {
  const std::string_view line = text.substr(0, text.find('\n'));
  std::uint64_t count = 0;
  if (line.starts_with("v1.")) {
    const std::size_t blank = std::min(line.find(' '), line.size() - 1);
    const auto read = std::from_chars(line.data() + blank + 1, line.data() + line.size(), count);
    if (read.ec == std::errc() && (read.ptr == line.data() + line.size() || *read.ptr == '\r')) return count;
  }
  throw data_error("the file is not a DALI index (expected: \"v1.2\" and the number of samples in its first line)",
                   "Remove it, or write it again",
                   {.stage = "index", .shard = path, .key = {}, .offset_bytes = 0});
}

/// Holds counts by file name. A name with two different counts has no count.
class counts_by_name {
 public:
  void add(std::string_view name, std::uint64_t count) {
    const auto [known, added] = counts_.try_emplace(std::string(name), count);
    if (!added && known->second != count) known->second = std::nullopt;
  }
  const std::optional<std::uint64_t>* find(std::string_view name) const {
    const auto known = counts_.find(name);
    return known == counts_.end() ? nullptr : &known->second;
  }

 private:
  std::map<std::string, std::optional<std::uint64_t>, std::less<>> counts_;
};

inline counts_by_name counts_of_sizes(std::string_view text, const std::string& path) {
  counts_by_name counts;
  json_objects(text, path).for_each([&](const std::vector<json_objects::member>& members) {
    for (const auto& m : members)
      if (m.number) counts.add(name_in_folder(m.key), *m.number);
  });
  return counts;
}

inline counts_by_name counts_of_wids(std::string_view text, const std::string& path) {
  counts_by_name counts;
  json_objects(text, path).for_each([&](const std::vector<json_objects::member>& members) {
    const std::string* url = nullptr;
    const std::uint64_t* samples = nullptr;
    for (const auto& m : members) {
      if (m.key == "url") url = &m.text;
      if (m.key == "nsamples" && m.number) samples = &*m.number;
    }
    if (url && samples) counts.add(name_in_folder(*url), *samples);
  });
  return counts;
}

}  // namespace detail

/// Returns the number of samples of each shard; nothing for a shard whose count is unknown. Throws data_error if a file
/// is malformed, io_error if the wids file does not exist or a file cannot be read.
inline std::vector<std::optional<std::uint64_t>> sidecar_counts(std::span<const std::string> shards,
                                                                const sidecar_counts_options& options = {}) {
  detail::counts_by_name wids;
  if (!options.wids_file.empty()) {
    const auto text = detail::small_file(options.wids_file);
    if (!text)
      throw io_error("the file does not exist", "Check its name", {.stage = "index", .shard = options.wids_file});
    wids = detail::counts_of_wids(*text, options.wids_file);
  }
  std::map<std::string, detail::counts_by_name, std::less<>> sizes;   // by folder
  std::vector<std::optional<std::uint64_t>> counts;
  for (const std::string& shard : shards) {
    const std::string_view name = detail::name_in_folder(shard);
    const std::string folder = shard.substr(0, shard.size() - name.size());
    if (!sizes.contains(folder)) {
      const auto text = detail::small_file(folder + "sizes.json");
      sizes.emplace(folder, text ? detail::counts_of_sizes(*text, folder + "sizes.json") : detail::counts_by_name());
    }
    detail::counts_by_name told;
    const std::string dali_path = folder + std::string(name.substr(0, name.find('.'))) + ".idx";
    if (const auto text = detail::small_file(dali_path, 4096))
      told.add(name, detail::count_of_dali_index(*text, dali_path));
    bool in_doubt = false;
    for (const auto* source : {&wids, &sizes.find(folder)->second})
      if (const auto* count = source->find(name)) {
        if (*count) told.add(name, **count);
        else in_doubt = true;
      }
    const auto* count = told.find(name);
    counts.push_back(count && !in_doubt ? *count : std::nullopt);
  }
  return counts;
}

}}  // namespace millrace
