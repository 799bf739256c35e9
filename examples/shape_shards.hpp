// A labelled data set without a download: the images of shapes.hpp, written into shards.
//
//   auto shapes = make_shape_shards({.folder = "data", .samples = 2400, .shards = 8, .seed = 1});
//   mr::shards(shapes.train)...      // data/train-{000..007}.tar; shapes.validation: data/val-{000..003}.tar
//
// Fields jpg and cls. With `masks` also pgm, a label map of the size of the image (0: background, label + 1: shape),
// and json: {"class": 3, "box": [left, top, right, bottom]}. With `restarts` images are baseline JPEGs with restart
// markers. Ten consecutive samples contain each class once. Validation has two samples for every five of training, from
// another seed. The same options write the same bytes, on any machine and any number of cores. A complete result of an
// earlier call with the same options is kept.
// Errors: setup_error, io_error. Progress is printed to stderr.
#pragma once

#include "restart_choice.hpp"
#include "shapes.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

struct shape_shards_options {
  std::string folder{};
  std::uint64_t samples = 2400;   ///< of the training set
  std::uint64_t shards = 8;
  std::uint64_t seed = 1;
  bool masks = false;   ///< also writes a label map and a box for each image
  restart_choice restarts{};
};

/// Patterns of the shards.
struct shape_shards {
  std::string train{};
  std::string validation{};
};

namespace shape_shards_detail {

inline std::string three_digits(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

/// Returns a label map as a PGM file (Netpbm P5): a header, then one byte per pixel.
inline std::vector<std::byte> encode_mask(const millrace::image& mask) {
  const std::string head = "P5 " + std::to_string(mask.shape()[1]) + " " + std::to_string(mask.shape()[0]) + " 255\n";
  const auto head_bytes = std::as_bytes(std::span(head)), mask_bytes = std::as_bytes(mask.span());
  std::vector<std::byte> file(head_bytes.begin(), head_bytes.end());
  file.insert(file.end(), mask_bytes.begin(), mask_bytes.end());
  return file;
}

inline std::string box_text(const labelled_shape& s) {
  std::string edges;
  for (const std::size_t edge : s.box) edges += (edges.empty() ? "" : ", ") + std::to_string(edge);
  return "{\"class\": " + std::to_string(s.label) + ", \"box\": [" + edges + "]}";
}

struct part {
  std::string name{};   ///< train or val
  std::uint64_t samples = 0, samples_per_shard = 0, seed = 0;
  bool masks = false;
  restart_choice restarts{};

  std::string pattern(const std::string& folder) const {
    return folder + "/" + name + "-{000.." + three_digits((samples - 1) / samples_per_shard) + "}.tar";
  }
};

inline void write_part(const std::string& folder, const part& p) {
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  millrace::shard_writer shards({.pattern = folder + "/" + p.name + "-%03d.tar", .max_samples = p.samples_per_shard});
  constexpr std::uint64_t together = 120;
  std::vector<labelled_shape> samples(together);   // rendered in parallel, written in order
  for (std::uint64_t start = 0; start < p.samples; start += together) {
    const std::uint64_t end = std::min(p.samples, start + together);
    tbb::parallel_for(start, end, [&](std::uint64_t i) {
      auto& sample = samples[i - start] = make_shape({.seed = p.seed, .index = i});
      if (p.restarts.enabled()) sample.jpeg = transcode::transcode_jpeg(sample.jpeg, p.restarts.coding());
    });
    for (std::uint64_t i = start; i < end; ++i) {
      const auto& sample = samples[i - start];
      const std::string key = p.name + "/" + std::to_string(i), label = std::to_string(sample.label);
      if (p.masks)
        shards.write(
            key, {{"jpg", sample.jpeg}, {"cls", label}, {"pgm", encode_mask(sample.mask)}, {"json", box_text(sample)}});
      else shards.write(key, {{"jpg", sample.jpeg}, {"cls", label}});
    }
    if (on_terminal || end == p.samples)
      std::fprintf(stderr, "%s%s images: %llu of %llu%s", on_terminal ? "\r" : "", p.name.c_str(),
                   static_cast<unsigned long long>(end), static_cast<unsigned long long>(p.samples),
                   end == p.samples ? "\n" : "");
  }
  shards.close();
}

}   // namespace shape_shards_detail

inline shape_shards make_shape_shards(const shape_shards_options& options) {
  using shape_shards_detail::part;
  if (options.shards == 0 || options.shards > 1000 || options.samples < 5 * options.shards ||
      options.samples % options.shards != 0)
    throw millrace::setup_error(
        std::to_string(options.samples) + " samples in " + std::to_string(options.shards) + " shards are not possible",
        "Choose 1 to 1000 shards and a multiple of that, at least 5 samples per shard");
  const std::uint64_t per_shard = options.samples / options.shards;
  const part train{"train", options.samples, per_shard, 2 * options.seed, options.masks, options.restarts};
  const part validation{"val",         2 * options.samples / 5, per_shard, 2 * options.seed + 1,
                        options.masks, options.restarts};

  // Written last: its existence means that all other files are complete.
  const std::filesystem::path stamp = std::filesystem::path(options.folder) / "made-with.txt";
  const std::string origin = "shapes 1: samples " + std::to_string(options.samples) + ", shards " +
                             std::to_string(options.shards) + ", seed " + std::to_string(options.seed) +
                             (options.masks ? ", masks" : "") +
                             (options.restarts.enabled() ? ", restarts per row " + options.restarts.text() : "");
  std::string existing;
  std::getline(std::ifstream(stamp), existing);
  if (existing != origin) {
    std::filesystem::create_directories(options.folder);
    std::filesystem::remove(stamp);
    for (const part& p : {train, validation}) shape_shards_detail::write_part(options.folder, p);
    std::ofstream(stamp) << origin << '\n';
  }
  return {train.pattern(options.folder), validation.pattern(options.folder)};
}
