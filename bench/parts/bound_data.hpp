// The shards that benchmarks of whole trainings read.
//
//   std::vector<std::string> names = bench::find_data("");        // or what the user chose, 'shards-{000..009}.tar'
//
// Nothing chosen: photographs that other benchmarks made (photo_sets.hpp), else pictures of shapes, made here.
// Errors: setup_error for what is not there. Threads: one.
#pragma once

#include "../../examples/shape_shards.hpp"
#include "../harness.hpp"

#include <millrace/sources/list/shard_list.hpp>

#include <filesystem>

namespace bench {

inline std::vector<std::string> find_data(const std::string& chosen) {
  if (!chosen.empty()) return millrace::list_shards(chosen);
  const std::string photos = data_folder() + "/photo-set-M";
  if (std::filesystem::exists(photos + "/stamp")) return millrace::list_shards(photos + "/{0..7}.tar");
  return millrace::list_shards(make_shape_shards({.folder = data_folder() + "/shapes"}).train);
}

}  // namespace bench
