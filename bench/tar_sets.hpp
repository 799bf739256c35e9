// Shards of synthetic samples for benchmarks, generated once under data_folder(); each run begins with them in the page
// cache.
//
//   const auto set = bench::make_tar_set({.name = "small", .shards = 16, .samples = 8192, .payload_bytes = 2048});
//   for (const auto& shard : set.shards) ...                    // .bytes: of all of them
#pragma once

#include "harness.hpp"

#include <millrace/base/random.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace bench {

struct tar_set_recipe {
  std::string name;
  std::size_t shards, samples;   ///< samples: of each shard
  std::size_t payload_bytes;     ///< of the field "bin": random bytes, different in each sample
  bool label = true;             ///< also "cls": the sample's number modulo 1,000
};

struct tar_set {
  std::string folder{};
  std::vector<std::string> shards{};
  std::uint64_t samples = 0, bytes = 0;
};

namespace detail {

inline void write_tar_set(const tar_set_recipe& recipe, const std::string& folder) {
  millrace::shard_writer writer(
      {.pattern = folder + "/s-%06d.tar", .max_samples = recipe.samples, .max_bytes = std::uint64_t{1} << 40});
  millrace::rng random({.seed = 1});
  std::string payload(recipe.payload_bytes, '\0');
  for (char& c : payload) c = static_cast<char>(random.below(256));
  for (std::size_t i = 0; i < recipe.shards * recipe.samples; ++i) {
    const std::string key = std::to_string(100'000'000 + i), label = std::to_string(i % 1000);
    for (int byte = 0; byte < 4 && !payload.empty(); ++byte)
      payload[random.below(payload.size())] = static_cast<char>(random.below(256));
    if (recipe.label) writer.write(key, {{"bin", payload}, {"cls", label}});
    else writer.write(key, {{"bin", payload}});
  }
  writer.close();
}

}   // namespace detail

/// Errors: those of writing and reading the shards.
inline tar_set make_tar_set(const tar_set_recipe& recipe) {
  namespace fs = std::filesystem;
  tar_set set{.folder = data_folder() + "/" + recipe.name + "-" + std::to_string(recipe.shards) + "-" +
                        std::to_string(recipe.samples),
              .samples = std::uint64_t{recipe.shards} * recipe.samples};
  if (!fs::exists(set.folder)) {
    const std::string unfinished = set.folder + ".new";
    fs::remove_all(unfinished);
    fs::create_directories(unfinished);
    detail::write_tar_set(recipe, unfinished);
    fs::rename(unfinished, set.folder);
  }
  set.shards = millrace::list_shards(set.folder);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (const auto& shard : set.shards) {
    set.bytes += fs::file_size(shard);
    millrace::file_source source(shard);
    for (std::uint64_t at = 0; const std::size_t got = source.read_at(at, buffer);) at += got;
  }
  return set;
}

}   // namespace bench
