// Defines what the headers of image/ declare when MILLRACE_COMPILED is set.
//
//   #include <millrace/compiled/pictures.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// A third of the compiled library: pictures.cpp includes it. Builds compile the thirds beside each other.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/pictures.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/image/exif_orientation.ipp>
#include <millrace/image/geometry.ipp>
#include <millrace/image/png/deflate_codes.ipp>
#include <millrace/image/png/inflate.ipp>
#include <millrace/image/png/png_crc.ipp>
#include <millrace/image/png/png_decoder.ipp>
#include <millrace/image/png/png_header.ipp>
#include <millrace/image/png/png_pixels.ipp>
#include <millrace/image/png/png_rows.ipp>
#include <millrace/image/coding/package_merge.ipp>
#include <millrace/image/jpeg_codes.ipp>
#include <millrace/image/libjpeg/jpeg_symbols.ipp>
#include <millrace/image/jpeg_encoder.ipp>
#include <millrace/image/jpeg_entries.ipp>
#include <millrace/image/jpeg_header.ipp>
#include <millrace/image/jpeg_transcoder.ipp>
#include <millrace/image/label_map.ipp>
#include <millrace/image/label_source.ipp>
#include <millrace/image/padded_picture.ipp>
#include <millrace/image/augment_draws.ipp>
#include <millrace/image/jpeg_encoder.ipp>
#include <millrace/image/jpeg_header.ipp>
#include <millrace/image/jpeg_transcoder.ipp>
#include <millrace/image/photometric_plan.ipp>
#include <millrace/image/picture.ipp>
#include <millrace/image/picture_renderer.ipp>
#include <millrace/image/pnm.ipp>
#include <millrace/image/pnm_header.ipp>
#include <millrace/image/any_picture.ipp>
#include <millrace/image/rgba_picture.ipp>
#include <millrace/image/row_finisher.ipp>
#include <millrace/image/pixel_rows.ipp>
#include <millrace/image/png.ipp>
#include <millrace/image/png_encoder.ipp>
#include <millrace/image/png_labels.ipp>
#include <millrace/image/ragged_picture.ipp>
#include <millrace/image/random_crop.ipp>
#include <millrace/image/random_erase.ipp>
