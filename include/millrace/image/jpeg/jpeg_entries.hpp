// Entry points of a JPEG: with them, a crop is decoded without going through what lies before it.
//
//   std::vector<std::byte> entries = mr::jpeg_entries(file);                   // once, kept beside the file
//   std::vector<std::byte> fewer = mr::jpeg_entries(file, {.every_mcus = 8});
//   std::printf("%zu bytes for a file of %zu\n", entries.size(), file.size()); // at most 3.5 %
//
// The bytes are opaque: they have a version, and hold where every few MCUs begin in the file and what their DC values
// are relative to. They belong to this file alone; with a file of another size they are refused. Wrong ones give wrong
// pixels: keep a checksum of file and entries with them, as an index of shards does.
// They never change pixels and hide no damage: a file that is damaged anywhere has none. Empty too for files that
// libjpeg decodes, for small images, and for files with restart markers that are dense enough.
// Errors: std::bad_alloc. Threads: any; each has a scratch of its own.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of jpeg_entries().
struct jpeg_entries_options {
  /// MCUs between entries of a 4:2:0 image, where one has 16 x 16 pixels; more of them where they are smaller. There
  /// are fewer entries where they would take more than 3.5 % of the file.
  std::size_t every_mcus = 4;
};

/// Returns the entry points of a JPEG, or nothing. Reads all of the file, in about the time of decoding a crop of it.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options, scratch& s);
/// Returns the same with memory of its own, which takes longer.
std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg, const jpeg_entries_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_entries.inl>
#endif
