// The file of the example network: a head, its values, and a note.
//
//   network_file::write("model.bin", head, {.values = bytes, .note = text});    // a temporary file first, then renamed
//   auto [updates, note] = network_file::read("model.bin", head, bytes);        // head: the expected sizes
//
// A checkpoint stores its resume point in the note. Both are therefore from one moment, whenever the process is killed.
// Errors: io_error; data_error if the file is incomplete, or of a network of another size. Threads: none shared.
#pragma once

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace network_file {

struct head {
  std::uint64_t mark = 0x326b726f7774656eU;   ///< "network2"
  std::uint64_t side = 0, classes = 0, values_bytes = 0;
  std::uint64_t updates = 0, note_bytes = 0, checksum = 0;   ///< not compared by same_size()

  bool same_size(const head& o) const {
    return mark == o.mark && side == o.side && classes == o.classes && values_bytes == o.values_bytes;
  }
};

struct contents {
  std::span<const std::byte> values{};
  std::string_view note{};
};

struct restored {
  std::uint64_t updates = 0;
  std::string note{};
};

inline std::uint32_t checksum_of(const contents& c) {
  return millrace::crc32c(std::as_bytes(std::span(c.note)), millrace::crc32c(c.values));
}

/// The file is always complete: either the old or the new one.
inline void write(const std::string& path, head h, const contents& c) {
  const std::string part = path + ".part";
  h.note_bytes = c.note.size();
  h.checksum = checksum_of(c);
  std::FILE* file = std::fopen(part.c_str(), "wb");
  bool good = file && std::fwrite(&h, sizeof h, 1, file) == 1 &&
              std::fwrite(c.values.data(), 1, c.values.size(), file) == c.values.size() &&
              std::fwrite(c.note.data(), 1, c.note.size(), file) == c.note.size() && std::fflush(file) == 0 &&
              ::fsync(::fileno(file)) == 0;
  int failure = errno;
  if (file && std::fclose(file) != 0) good = false;
  if (good && std::rename(part.c_str(), path.c_str()) == 0) return;
  if (good) failure = errno;
  std::remove(part.c_str());
  throw millrace::io_error("cannot write '" + millrace::printable(path) + "': " + std::strerror(failure),
                           "Check the folder and the free space of the disk");
}

/// Fills `values` and returns the other contents. If it throws, `values` may be partly filled.
inline restored read(const std::string& path, const head& expected, std::span<std::byte> values) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file)
    throw millrace::io_error("cannot open '" + millrace::printable(path) + "': " + std::strerror(errno),
                             "Check the path");
  constexpr std::uint64_t max_note_bytes = 1 << 20;
  head stored;
  std::string note;
  const auto read_all = [&] {
    if (std::fread(&stored, sizeof stored, 1, file.get()) != 1 || !stored.same_size(expected) ||
        stored.note_bytes > max_note_bytes)
      return false;
    note.resize(static_cast<std::size_t>(stored.note_bytes));
    return std::fread(values.data(), 1, values.size(), file.get()) == values.size() &&
           std::fread(note.data(), 1, note.size(), file.get()) == note.size() && std::fgetc(file.get()) == EOF &&
           stored.checksum == checksum_of({.values = values, .note = note});
  };
  if (!read_all())
    throw millrace::data_error("'" + millrace::printable(path) + "' is not a complete network of this size",
                               "Load it with the side and the classes of the saved network");
  return {.updates = stored.updates, .note = std::move(note)};
}

}   // namespace network_file
