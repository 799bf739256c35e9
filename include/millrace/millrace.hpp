// Everything that a training program needs, except what is opt-in (millrace/adapt/).
//
//   #include <millrace/millrace.hpp>
//   namespace mr = millrace;
#pragma once

#include <millrace/io/tar/shard_writer.hpp>
#include <millrace/item/array.hpp>
#include <millrace/item/scalar.hpp>
#include <millrace/pictures.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>
#include <millrace/stages/to_device.hpp>
#include <millrace/train/json_lines.hpp>
#include <millrace/train/log.hpp>
#include <millrace/train/metrics.hpp>
#include <millrace/train/status_line.hpp>
#include <millrace/train/tensorboard.hpp>
