// The same JPEG with progressive coding: the same coefficients in libjpeg's own ten scans.
//
//   std::vector<std::byte> progressive = bench::progressive_file(baseline);
//
// Ends the program on an error, because the benchmark wrote the files.
#pragma once

#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#include <cstddef>
#include <cstdlib>
#include <span>
#include <vector>

namespace bench {

inline std::vector<std::byte> progressive_file(std::span<const std::byte> file) {
  jpeg_error_mgr messages{};
  jpeg_decompress_struct from{};
  jpeg_compress_struct to{};
  from.err = to.err = jpeg_std_error(&messages);
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  unsigned char* memory = nullptr;
  unsigned long size_bytes = 0;
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&from, 1);
  auto* const coefficients = jpeg_read_coefficients(&from);
  jpeg_mem_dest(&to, &memory, &size_bytes);
  jpeg_copy_critical_parameters(&from, &to);
  jpeg_simple_progression(&to);
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_destroy_compress(&to);
  jpeg_destroy_decompress(&from);
  const auto* const begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> result(begin, begin + size_bytes);
  std::free(memory);
  return result;
}

}   // namespace bench
