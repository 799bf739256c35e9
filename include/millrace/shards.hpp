// Umbrella header for everything about tar shards: reading and writing shards, lists of keys, and set indexes. A set
// index is one file that describes all shards of a set, so that a session starts faster.
//
//   #include <millrace/shards.hpp>
//   auto flow = mr::shards("train-{000..146}.tar", {.without = mr::keys_from("bad.jsonl")}) | mr::shuffle({});
//   mr::shard_writer out({.pattern = "out/train-%06d.tar", .max_samples = 10'000});
#pragma once

#include <millrace/base/crc32c.hpp>
#include <millrace/base/version.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/tensor/array.hpp>
#include <millrace/sources/keys_from.hpp>
#include <millrace/sources/list/shard_list.hpp>
#include <millrace/sources/prepare/entry_points.hpp>
#include <millrace/sources/prepare/write_set_index.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/shuffle.hpp>
