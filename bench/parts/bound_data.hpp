// The shards that benchmarks of complete trainings read.
//
//   std::vector<std::string> names = bench::find_data("");        // or the user's pattern, 'shards-{000..009}.tar'
//
// Without a pattern: photographs that other benchmarks generated (photo_sets.hpp), else images of shapes generated
// here. Errors: setup_error for missing shards. Threads: one.
#pragma once

#include "../../examples/shape_shards.hpp"
#include "../harness.hpp"

#include <millrace/sources/list/shard_list.hpp>

#include <filesystem>

namespace bench {

inline std::vector<std::string> find_data(const std::string& pattern) {
  if (!pattern.empty()) return millrace::list_shards(pattern);
  const std::string photos = data_folder() + "/photo-set-M";
  if (std::filesystem::exists(photos + "/stamp")) return millrace::list_shards(photos + "/{0..7}.tar");
  return millrace::list_shards(make_shape_shards({.folder = data_folder() + "/shapes"}).train);
}

}   // namespace bench
