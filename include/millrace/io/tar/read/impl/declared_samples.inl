// Definitions for declared_samples.hpp.
#pragma once

#include <millrace/io/tar/read/declared_samples.hpp>

#include <millrace/io/file/byte_source.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::string front_of_file(const storage& at, const std::string& path, std::size_t max_bytes) {
  if (!at.is_local()) try {
      return front_of_stored_file(at, path, max_bytes).value_or(std::string());
    } catch (const io_error&) {
      return {};
    }
  struct ::stat status{};
  if (posix_files::stat_path(path.c_str(), status) == -1 || !S_ISREG(status.st_mode)) return {};
  try {
    file_source file(path);
    std::string text(std::min(max_bytes, static_cast<std::size_t>(status.st_size)), '\0');
    text.resize(read_fully(file, 0, std::as_writable_bytes(std::span(text))));
    return text;
  } catch (const io_error&) {
    return {};
  }
}

MILLRACE_RARE std::uint64_t number_at(std::string_view text, std::size_t at) noexcept {
  at = std::min(text.find_first_not_of(" \t\r\n:", std::min(at, text.size())), text.size());
  std::uint64_t number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

MILLRACE_RARE sample_declaration declared_samples(const std::string& shard, const storage& at) {
  sample_declaration largest;
  const auto consider = [&largest](const std::string& file, std::uint64_t samples) {
    if (samples > largest.samples) largest = {samples, file};
  };
  const std::size_t name_at = shard.rfind('/') + 1;
  const std::string folder = shard.substr(0, name_at), name = shard.substr(name_at);

  const std::string index = shard + ".millrace-index", head = front_of_file(at, index, index_samples_at + 4);
  if (head.starts_with("MR-INDEX") && head.size() == index_samples_at + 4) {
    std::uint32_t samples = 0;
    std::memcpy(&samples, head.data() + index_samples_at, sizeof samples);
    consider(index, samples);
  }
  const std::string dali = folder + name.substr(0, name.find('.')) + ".idx", line = front_of_file(at, dali, 64);
  if (line.starts_with("v1.")) consider(dali, number_at(line, line.find(' ')));

  const std::string sizes = folder + "sizes.json", all = front_of_file(at, sizes, std::size_t{64} << 20);
  const std::string quoted = '"' + name + '"';
  const std::size_t entry = all.find(quoted);
  if (entry != std::string::npos) consider(sizes, number_at(all, entry + quoted.size()));
  return largest;
}

MILLRACE_RARE data_error fewer_than_declared(const sample_declaration& declared, std::uint64_t count,
                                             error_location where) {
  return {"the shard ends without an end marker, and with fewer samples than " + printable(declared.file) +
              " counts: got " + std::to_string(count) + ", expected " + std::to_string(declared.samples),
          "It was truncated: write, copy or download it again. If it is complete, remove " + printable(declared.file),
          std::move(where)};
}

}}}   // namespace millrace::detail
