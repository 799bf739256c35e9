// Umbrella header for joining parallel sets of shards by key, such as shards of images and shards of embeddings.
//
//   #include <millrace/join.hpp>
//   auto flow = mr::join(mr::shards("images-*.tar"), mr::shards("embeddings-*.tar")) | mr::shuffle({.window = 8192});
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/shards.hpp>
#include <millrace/sources/join.hpp>
