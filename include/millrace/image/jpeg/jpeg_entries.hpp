// Computes entry points of a JPEG, which allow a crop to be decoded without decoding all data before it.
//
//   std::vector<std::byte> entries = mr::jpeg_entries(file);                   // once; store them next to the file
//   std::vector<std::byte> fewer = mr::jpeg_entries(file, {.every_mcus = 8});
//   std::printf("%zu bytes for a file of %zu\n", entries.size(), file.size()); // at most 3.5 %
//
// The bytes are opaque. They contain a version and the state of the decoder (position and DC predictors) at every few
// MCUs; an MCU is the coding unit of a JPEG, such as 16 x 16 pixels. Entries are valid for this file only; the decoder
// refuses entries of a file of another size. Wrong entries result in wrong pixels. Therefore store a checksum of the
// file and its entries with the entries, as a shard index does. Correct entries do not change any pixel.
// jpeg_entries() returns no entries for a damaged file, because entries would hide the damage. It also returns no
// entries for files that only libjpeg can decode, for small images, and for files with enough restart markers.
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
  /// Number of MCUs between entries of a 4:2:0 image, whose MCUs have 16 x 16 pixels. The number is larger for smaller
  /// MCUs, and also if the entries would otherwise exceed 3.5 % of the file size.
  std::size_t every_mcus = 4;
};

/// Returns the entry points of a JPEG, or an empty vector. Reads the full file. Cost: about the time for decoding a
/// crop.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options, scratch& s);
/// Same as the other jpeg_entries(), but allocates its own scratch memory, which is slower.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_entries.inl>
#endif
