// Umbrella header for training from shards with JPEGs, with the most common sources and stages. For other features,
// include another umbrella header of this folder, or a header of millrace/adapt/. For example, pictures.hpp adds image
// formats other than JPEG, label maps and photometric operations.
//
//   #include <millrace/millrace.hpp>
//   namespace mr = millrace;
#pragma once

#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/normalized_picture.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/io/file/read_file.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/tensor/array.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/missing_headers.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>
#include <millrace/stages/take.hpp>
#include <millrace/stages/to_device.hpp>
#include <millrace/train/json_lines.hpp>
#include <millrace/train/log.hpp>
#include <millrace/train/metrics.hpp>
#include <millrace/train/status_line.hpp>
#include <millrace/train/tensorboard.hpp>
