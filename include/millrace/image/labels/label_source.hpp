// Opens a label map: finds its format by its content, and gives rows of its samples as they are stored.
//
//   const mr::detail::label_source from = mr::detail::open_labels(field, 1);     // samples of at most one byte
//   const mr::detail::label_rows rows = from.rows_of(from, 40, 200, scratch);    // rows 40..199 at least
//   const std::byte* row = rows.data + (60 - rows.first) * rows.stride_bytes;
//
// Samples are never scaled, never looked up in a palette, never converted to colors: they are numbers of classes.
// Formats: PGM (P5, of 8 or 16 bits) and .npy ([height, width] of u8 or u16), both read in place; PNG (palette or gray,
// of 1 to 16 bits). A further format is a function that opens it, and one that gives rows, decoded into memory of the
// scratch if need be.
// Errors: data_error with field, shard and key. Threads: any. Lifetime: a label_source keeps its field's block alive;
// rows are valid until the scratch is used again.
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

/// A label map as it is stored.
struct label_source {
  /// Gives the rows [begin, end).
  using row_function = label_rows (*)(const label_source& from, std::size_t begin, std::size_t end, scratch& s);

  bytes field{};
  std::size_t width = 0, height = 0;   ///< 1 to 65,535 each
  std::size_t sample_bytes = 1;        ///< 1 or 2
  bool big_endian = false;             ///< for samples of two bytes
  std::size_t data_at = 0;             ///< where the samples begin in the field, for formats that are read in place
  row_function rows_of = nullptr;
};

/// Opens a label map. Throws data_error if it is none, is damaged, or has samples of more than `limit_bytes`.
label_source open_labels(bytes field, std::size_t limit_bytes);

/// Throws the data_error of a field that is no label map: "the field 'pgm' <problem>".
[[noreturn]] void throw_no_labels(const bytes& field, const std::string& problem, std::string hint);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/labels/impl/label_source.inl>
#endif
