// Opens a label map: detects the format from the content, and delivers rows of unconverted samples.
//
//   const mr::detail::label_source from = mr::detail::open_labels(field, 1);     // samples of at most one byte
//   const mr::detail::label_rows rows = from.rows_of(from, 40, 200, scratch);    // rows 40..199 at least
//   const std::byte* row = rows.data + (60 - rows.first) * rows.stride_bytes;
//
// Samples are class numbers: they are never scaled, mapped through a palette, or converted to colors.
// Formats: PGM (P5, 8 or 16 bits) and .npy ([height, width] of u8 or u16), which are read in place; PNG (palette or
// gray, 1 to 16 bits). To add a format, write a function that opens a map and a function that delivers rows.
// Errors: data_error with field, shard and key. Threads: any thread. Lifetime: a label_source keeps its field's block
// alive; rows are valid until the scratch is used again.
#pragma once

#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Rows of samples. Row `first` begins at `data`.
struct label_rows {
  const std::byte* data = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t first = 0;
};

/// A stored label map.
struct label_source {
  /// Returns the rows [begin, end).
  using row_function = label_rows (*)(const label_source& from, std::size_t begin, std::size_t end, scratch& s);

  bytes field{};
  std::size_t width = 0, height = 0;   ///< 1 to 65,535 each
  std::size_t sample_bytes = 1;        ///< 1 or 2
  bool big_endian = false;             ///< byte order of two-byte samples
  std::size_t data_at = 0;             ///< offset of the samples in the field, for formats that are read in place
  row_function rows_of = nullptr;
};

// Label maps in PNG files: stored palette indices or gray values. Samples of 1, 2, 4 and 8 bits become one byte,
// samples of 16 bits become two bytes. Palettes and transparency are ignored.
// Errors for damage have the stage "png". Damage below the last row can remain undetected.

/// Opens a label map. Throws data_error if the field is not a PNG, is damaged before the pixels, or has several
/// channels.
label_source open_png_labels(bytes field);

/// Decodes the rows [begin, end) of a PNG into memory of the scratch; see label_source::row_function.
label_rows rows_of_png(const label_source& from, std::size_t begin, std::size_t end, scratch& s);

/// Opens a label map. Throws data_error if the field is not a label map, is damaged, or has samples of more than
/// `limit_bytes`.
label_source open_labels(bytes field, std::size_t limit_bytes);

/// Throws the data_error for a field that cannot be read as a label map: "the field 'pgm' <problem>".
[[noreturn]] void throw_label_error(const bytes& field, const std::string& problem, std::string hint);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/labels/impl/label_source.inl>
#endif
