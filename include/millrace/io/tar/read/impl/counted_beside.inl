// Defines what counted_beside.hpp declares.
#pragma once

#include <millrace/io/tar/read/counted_beside.hpp>

#include <millrace/io/file/byte_source.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string front_of_file(const storage& at, const std::string& path, std::size_t max_bytes) {
  if (!at.is_local()) try {
      return front_of_stored(at, path, max_bytes).value_or(std::string());
    } catch (const io_error&) {
      return {};
    }
  struct ::stat status {};
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

MILLRACE_INLINE std::uint64_t number_at(std::string_view text, std::size_t at) noexcept {
  at = std::min(text.find_first_not_of(" \t\r\n:", std::min(at, text.size())), text.size());
  std::uint64_t number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

MILLRACE_INLINE samples_told counted_beside(const std::string& shard, const storage& at) {
  samples_told most;
  const auto look = [&most](const std::string& file, std::uint64_t samples) {
    if (samples > most.samples) most = {samples, file};
  };
  const std::size_t name_at = shard.rfind('/') + 1;
  const std::string folder = shard.substr(0, name_at), name = shard.substr(name_at);

  const std::string own = shard + ".millrace-index", head = front_of_file(at, own, index_samples_at + 4);
  if (head.starts_with("MR-INDEX") && head.size() == index_samples_at + 4) {
    std::uint32_t samples = 0;
    std::memcpy(&samples, head.data() + index_samples_at, sizeof samples);
    look(own, samples);
  }
  const std::string dali = folder + name.substr(0, name.find('.')) + ".idx", line = front_of_file(at, dali, 64);
  if (line.starts_with("v1.")) look(dali, number_at(line, line.find(' ')));

  const std::string sizes = folder + "sizes.json", all = front_of_file(at, sizes, std::size_t{64} << 20);
  const std::string quoted = '"' + name + '"';
  const std::size_t entry = all.find(quoted);
  if (entry != std::string::npos) look(sizes, number_at(all, entry + quoted.size()));
  return most;
}

MILLRACE_INLINE data_error fewer_than_counted(const samples_told& told, std::uint64_t found, error_location where) {
  return {"the shard ends without an end marker, and with fewer samples than " + printable(told.file) +
              " counts: got " + std::to_string(found) + ", expected " + std::to_string(told.samples),
          "It was cut: write, copy or download it again. If it is right, remove that file", std::move(where)};
}

}}}  // namespace millrace::detail
