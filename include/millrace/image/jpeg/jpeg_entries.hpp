// Entry points of a JPEG: with them, a crop is decoded without decoding everything before it.
//
//   std::vector<std::byte> entries = mr::jpeg_entries(file);                   // once; store them next to the file
//   std::vector<std::byte> fewer = mr::jpeg_entries(file, {.every_mcus = 8});
//   std::printf("%zu bytes for a file of %zu\n", entries.size(), file.size()); // at most 3.5 %
//
// The bytes are opaque: they contain a version, and for every few MCUs the position in the file and the DC predictors.
// They are valid for this file only; entries of a file of another size are refused. Wrong entries result in wrong
// pixels: store a checksum of file and entries with them, as a shard index does.
// Entries never change pixels and hide no damage: a file that is damaged anywhere has none. The result is also empty
// for files that libjpeg decodes, for small images, and for files with sufficiently dense restart markers.
// Errors: std::bad_alloc. Threads: any; each has its own scratch.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of jpeg_entries().
struct jpeg_entries_options {
  /// MCUs between entries of a 4:2:0 image, whose MCUs have 16 x 16 pixels; more if MCUs are smaller. There are fewer
  /// entries if they would need more than 3.5 % of the file.
  std::size_t every_mcus = 4;
};

/// Returns the entry points of a JPEG, or nothing. Reads the full file, in about the time of decoding a crop of it.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options, scratch& s);
/// Returns the same, but allocates its own memory, which is slower.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_entries.inl>
#endif
