// Contains the definitions for the headers of image/, except plan/pair_rule.hpp. Requires -DMILLRACE_COMPILED.
//
//   #include <millrace/compiled/pictures.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// The compiled library has three parts, which a build compiles in parallel: files.cpp, pictures.cpp and runs.cpp.
// pictures.cpp includes this header.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/pictures.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/image/augment/impl/augment_draws.inl>
#include <millrace/image/augment/impl/photometric_plan.inl>
#include <millrace/image/impl/any_picture.inl>
#include <millrace/image/jpeg/impl/jpeg_encoder.inl>
#include <millrace/image/jpeg/impl/jpeg_entries.inl>
#include <millrace/image/jpeg/impl/jpeg_header.inl>
#include <millrace/image/labels/impl/label_map.inl>
#include <millrace/image/labels/impl/u16_picture.inl>
#include <millrace/image/picture/impl/picture.inl>
#include <millrace/image/picture/impl/rgba_picture.inl>
#include <millrace/image/plan/impl/geometry.inl>
#include <millrace/image/plan/impl/random_crop.inl>
#include <millrace/image/plan/impl/random_erase.inl>
#include <millrace/image/png/impl/deflate_codes.inl>
#include <millrace/image/png/impl/inflate.inl>
#include <millrace/image/png/impl/png.inl>
#include <millrace/image/png/impl/png_decoder.inl>
#include <millrace/image/png/impl/png_encoder.inl>
#include <millrace/image/png/impl/png_rows.inl>
#include <millrace/image/pnm/impl/pnm.inl>
#include <millrace/image/render/impl/picture_job.inl>
