// The file that the example network is kept in: a head, then its numbers.
//
//   network_file::write("model.bin", head, bytes);                        // beside it first, then renamed
//   updates = network_file::read("model.bin", head, bytes);               // head: the sizes that it has to have
//
// Errors: io_error; data_error if the file is not whole, or of a network of another size. Threads: none shared.
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
#include <unistd.h>

namespace network_file {

struct head {
  std::uint64_t mark = 0x316b726f7774656eU;   ///< "network1"
  std::uint64_t side = 0, classes = 0, values_bytes = 0;
  std::uint64_t updates = 0, checksum = 0;    ///< these two are read, not compared

  bool same_size(const head& o) const {
    return mark == o.mark && side == o.side && classes == o.classes && values_bytes == o.values_bytes;
  }
};

/// The file is always a whole one: the old or the new.
inline void write(const std::string& path, head h, std::span<const std::byte> values) {
  const std::string part = path + ".part";
  h.checksum = millrace::crc32c(values);
  std::FILE* file = std::fopen(part.c_str(), "wb");
  bool good = file && std::fwrite(&h, sizeof h, 1, file) == 1 &&
              std::fwrite(values.data(), 1, values.size(), file) == values.size() && std::fflush(file) == 0 &&
              ::fsync(::fileno(file)) == 0;
  int failure = errno;
  if (file && std::fclose(file) != 0) good = false;
  if (good && std::rename(part.c_str(), path.c_str()) == 0) return;
  if (good) failure = errno;
  std::remove(part.c_str());
  throw millrace::io_error("cannot write '" + millrace::printable(path) + "': " + std::strerror(failure),
                           "Check the folder and the room on the disk");
}

/// Fills `values` and gives the number of updates. Where it throws, `values` may be half filled.
inline std::uint64_t read(const std::string& path, const head& expected, std::span<std::byte> values) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file)
    throw millrace::io_error("cannot open '" + millrace::printable(path) + "': " + std::strerror(errno),
                             "Check the path");
  head found;
  if (std::fread(&found, sizeof found, 1, file.get()) != 1 || !found.same_size(expected) ||
      std::fread(values.data(), 1, values.size(), file.get()) != values.size() || std::fgetc(file.get()) != EOF ||
      found.checksum != millrace::crc32c(values))
    throw millrace::data_error("'" + millrace::printable(path) + "' does not hold a whole network of this size",
                               "Load with the side and the classes that it was saved with");
  return found.updates;
}

}  // namespace network_file
