// Umbrella header for training from shards with audio. Contains the WAV decoder, audio plans and their rows, shards,
// stages and sessions. This header needs oneTBB, libarchive and zlib, but not libjpeg.
//
//   #include <millrace/audio.hpp>
//   auto flow = mr::shards("speech-{000..146}.tar", {.seed = 7}) | mr::shuffle({.window = 8'192})
//             | mr::map(prepare) | mr::batch<example>({.size = 64}) | mr::to_device();
//   for (auto& [sound, word] : mr::session{std::move(flow), {.epochs = 10}}) train_step(sound, word);
//
// adapt/sndfile.hpp adds other formats, and adapt/soxr.hpp adds resampling.
#pragma once

#include <millrace/base/version.hpp>

#include <millrace/audio/audio.hpp>
#include <millrace/audio/wav.hpp>
#include <millrace/io/file/read_file.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>
#include <millrace/stages/take.hpp>
#include <millrace/stages/to_device.hpp>
