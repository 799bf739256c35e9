// Computes entry points of a JPEG. With entry points, a decoder can decode a crop without decoding all data before the
// crop.
//
//   std::vector<std::byte> entries = mr::jpeg_entries(file);                   // once; store them next to the file
//   std::vector<std::byte> fewer = mr::jpeg_entries(file, {.every_mcus = 8});
//   std::printf("%zu of %zu\n", entries.size(), file.size());   // entries: at most 3.5 % of the file
//
// The bytes are opaque, and belong to this file only. The decoder refuses entries that were computed for a file of
// another size. If the sizes are equal but the files differ, the pixels are wrong. Therefore store checksums of the
// file and of the entries next to the entries, as a shard index does. The result is empty for damaged files, small
// images, progressive files, files with enough restart markers, and files that only libjpeg can decode.
// Errors: throws std::bad_alloc. Threads: any; each thread passes its own scratch.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of jpeg_entries().
struct jpeg_entries_options {
  /// Number of MCUs (coding units) between two entries, if an MCU has 16 x 16 pixels. jpeg_entries() increases this
  /// number for smaller MCUs, and if the entries would exceed 3.5 % of the file size.
  std::size_t every_mcus = 4;
};

/// Returns the entry points of a JPEG, or an empty vector. Cost: one Huffman decoding of the full file.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options, scratch& s);
/// Same as the other jpeg_entries(), but allocates its own scratch memory, which is slower.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_entries.inl>
#endif
