// Label maps in PNG files: stored palette indices or gray values.
//
//   const mr::detail::label_source from = mr::detail::open_png_labels(field);
//   const mr::detail::label_rows rows = from.rows_of(from, 40, 200, scratch);      // rows 40..199, decoded
//
// Samples of 1, 2, 4 and 8 bits become one byte, samples of 16 bits become two bytes. Palettes and transparency are not
// read, so colors have no effect, and indices beyond the palette are allowed. Rows above the first requested row are
// also inflated.
// Errors and lifetime: see label_source.hpp. Errors for damage have the stage "png". Damage below the last row may not
// be detected.
#pragma once

#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct label_source;   // label_source.hpp, which uses this header for PNGs
struct label_rows;

/// Opens a label map. Throws data_error if the field is not a PNG, is damaged before the pixels, or has several
/// channels.
label_source open_png_labels(bytes field);

/// Decodes the rows [begin, end) of a PNG into memory of the scratch; see label_source::row_function.
label_rows rows_of_png(const label_source& from, std::size_t begin, std::size_t end, scratch& s);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/labels/impl/png_labels.inl>
#endif
