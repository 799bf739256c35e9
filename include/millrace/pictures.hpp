// Everything about pictures: plans, crops, label maps, the encoder. An umbrella: includes only.
//
//   #include <millrace/pictures.hpp>
//   mr::picture p = mr::jpeg(record["jpg"]).random_resized_crop(224, rng).random_flip(rng);
#pragma once

#include <millrace/image/any_picture.hpp>
#include <millrace/image/random_crop.hpp>
#include <millrace/image/jpeg_encoder.hpp>
#include <millrace/image/label_map.hpp>
#include <millrace/image/normalized_picture.hpp>
#include <millrace/image/padded_picture.hpp>
#include <millrace/image/photometric_plan.hpp>
#include <millrace/image/picture.hpp>
#include <millrace/image/png.hpp>
#include <millrace/image/pnm.hpp>
