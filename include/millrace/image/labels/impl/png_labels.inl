// Definitions for png_labels.hpp.
#pragma once

#include <millrace/image/labels/png_labels.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/labels/label_source.hpp>
#include <millrace/image/png/png_decoder.hpp>
#include <millrace/item/record.hpp>

#include <bit>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Decodes label maps; reused for all maps.
struct png_label_decoder {
  png_decoder decoder;
  png_memory memory;
};

MILLRACE_INLINE label_rows rows_of_png(const label_source& from, std::size_t begin, std::size_t end, scratch& s) {
  auto& [decoder, memory] = s.get<png_label_decoder>();
  const std::size_t stride = from.width * from.sample_bytes;
  std::uint8_t* rows = nullptr;
  try {
    decoder.open(from.field, {.max_pixels = std::uint64_t{from.width} * from.height});
    decoder.expect_rows(end);   // before the allocation, so that a forged size costs no memory
    std::uint8_t* to = rows = memory.at_least((end - begin) * stride);
    const png_region region{.top = begin, .right = from.width, .bottom = end};
    decoder.start(region, {.layout = png_layout::samples});
    for (; to != rows + (end - begin) * stride; to += stride) decoder.next_to(to);
    decoder.finish();
  } catch (error& e) {
    e.locate(location_of(from.field));
    throw;
  }
  s.count(from.sample_bytes > 2 ? "PNGs of 16-bit RGB" : "label maps in PNGs");
  return {.data = reinterpret_cast<const std::byte*>(rows), .stride_bytes = stride, .first = begin};
}

MILLRACE_INLINE label_source open_png_labels(bytes field) {
  png_header header;
  try {
    header = read_png_header(field);
  } catch (error& e) {
    e.locate(location_of(field));
    throw;
  }
  if (header.channels() != 1)
    throw_label_error(field,
                    "is a PNG that is not a label map: got " + std::to_string(header.channels()) +
                        " channels, expected palette indices or gray",
                    header.depth == 16 && header.channels() > 2
                        ? "Use mr::png(field).u16() for samples of 16-bit RGB, such as optical flow"
                        : "Write one class index per pixel as a palette PNG, or as an 8-bit or 16-bit gray PNG");
  label_source source{.width = header.width, .height = header.height, .sample_bytes = header.depth == 16 ? 2U : 1U,
                    .big_endian = std::endian::native == std::endian::big, .rows_of = rows_of_png};
  source.field = std::move(field);
  return source;
}

}}}  // namespace millrace::detail
