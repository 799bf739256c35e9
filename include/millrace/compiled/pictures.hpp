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

#include <millrace/image/plan/exif_orientation.ipp>
#include <millrace/image/plan/geometry.ipp>
#include <millrace/image/png/deflate_codes.ipp>
#include <millrace/image/png/inflate.ipp>
#include <millrace/image/png/png_crc.ipp>
#include <millrace/image/png/png_decoder.ipp>
#include <millrace/image/png/png_header.ipp>
#include <millrace/image/png/png_pixels.ipp>
#include <millrace/image/png/png_rows.ipp>
#include <millrace/image/jpeg/coding/package_merge.ipp>
#include <millrace/image/jpeg/jpeg_codes.ipp>
#include <millrace/image/jpeg/libjpeg/jpeg_symbols.ipp>
#include <millrace/image/jpeg/jpeg_encoder.ipp>
#include <millrace/image/jpeg/jpeg_entries.ipp>
#include <millrace/image/jpeg/jpeg_header.ipp>
#include <millrace/image/jpeg/jpeg_transcoder.ipp>
#include <millrace/image/labels/label_map.ipp>
#include <millrace/image/labels/label_source.ipp>
#include <millrace/image/picture/padded_picture.ipp>
#include <millrace/image/augment/augment_draws.ipp>
#include <millrace/image/jpeg/jpeg_encoder.ipp>
#include <millrace/image/jpeg/jpeg_header.ipp>
#include <millrace/image/jpeg/jpeg_transcoder.ipp>
#include <millrace/image/augment/photometric_plan.ipp>
#include <millrace/image/picture/picture.ipp>
#include <millrace/image/render/picture_renderer.ipp>
#include <millrace/image/pnm/pnm.ipp>
#include <millrace/image/pnm/pnm_header.ipp>
#include <millrace/image/any_picture.ipp>
#include <millrace/image/picture/rgba_picture.ipp>
#include <millrace/image/render/row_finisher.ipp>
#include <millrace/image/render/pixel_rows.ipp>
#include <millrace/image/png/png.ipp>
#include <millrace/image/png/png_encoder.ipp>
#include <millrace/image/labels/png_labels.ipp>
#include <millrace/image/picture/ragged_picture.ipp>
#include <millrace/image/plan/random_crop.ipp>
#include <millrace/image/plan/random_erase.ipp>
