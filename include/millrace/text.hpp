// Umbrella header for everything about text: lines of files, packing into rows of tokens, and sessions. This header
// needs oneTBB, libarchive and zlib, but not libjpeg.
//
//   #include <millrace/text.hpp>
//   auto flow = mr::lines("corpus-{0000..1023}.jsonl.gz", {.seed = 7}) | mr::shuffle({.window = 65'536})
//             | mr::map(tokenize) | mr::pack({.length = 2'049, .separator = 2})
//             | mr::batch<&mr::packed::ids>({.size = 16});
//   for (auto& b : mr::session{std::move(flow), {.epochs = 1}}) train_step(b);
#pragma once

#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/lines.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/token_files.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/pack.hpp>
#include <millrace/stages/shuffle.hpp>
#include <millrace/stages/take.hpp>
#include <millrace/stages/to_device.hpp>
