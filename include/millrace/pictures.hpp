// Umbrella header for everything about images: all formats, label maps, photometric operations, padding.
//
//   #include <millrace/pictures.hpp>
//   mr::picture p = mr::any_picture(record["jpg;png"]).random_resized_crop(224, rng).random_flip(rng);
//   p = p.apply(mr::photometric_plan().color_jitter({.brightness = 0.4}, rng));
//
// millrace.hpp includes only crops of JPEGs, and compiles twice as fast as this header.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/any_picture.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/labels/mosaic_labels.hpp>
#include <millrace/image/labels/u16_picture.hpp>
#include <millrace/image/picture/interleaved.hpp>
#include <millrace/image/picture/mosaic_picture.hpp>
#include <millrace/image/picture/normalized_picture.hpp>
#include <millrace/image/picture/padded_picture.hpp>
#include <millrace/image/picture/patch_list.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/pnm/pnm.hpp>
#include <millrace/image/picture/ragged_picture.hpp>
#include <millrace/image/picture/rgba_picture.hpp>
